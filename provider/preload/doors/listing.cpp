// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/listing.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "provider/preload/doors/link.hpp"
#include "provider/system/problem.hpp"
#include "provider/system/verbs_caller.hpp"

namespace dapple::doors {
namespace {

using Function = void (*)(const void* in_verbs_library);
constinit std::atomic<Function> plugin = nullptr;

// The copies of libibverbs may do this at the same time, and the constructor would find only one of them. If the file
// is missing, libibverbs itself tells it.
void load_plugin() {
  static constexpr char kPlugin[] = "libdapple-rdmav34.so";
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&load_plugin), &own) == 0) return;
  char path[PATH_MAX];
  const char* slash = strrchr(own.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash + 1 - own.dli_fname);
  if (snprintf(path, sizeof path, "%.*s%s", folder, own.dli_fname, kPlugin) >= static_cast<int>(sizeof path)) return;
  dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

// This thread's last question about a device's file came from no libibverbs.so.
constinit thread_local bool asked_from_program = false;

}  // namespace

void when_listing(Function function) {
  plugin.store(function, std::memory_order_release);
}

void listing_begins() {
  const void* in_verbs_library = soft::calling_verbs_library();
  if (in_verbs_library == nullptr) return;
  if (plugin.load(std::memory_order_acquire) == nullptr) load_plugin();
  if (const Function function = plugin.load(std::memory_order_acquire)) function(in_verbs_library);
}

bool lists_devices(const char* path) {
  static constexpr char kFolder[] = "/class/infiniband_verbs";
  const size_t size = path == nullptr ? 0 : strlen(path);
  return size >= sizeof kFolder - 1 && memcmp(path + size - (sizeof kFolder - 1), kFolder, sizeof kFolder - 1) == 0;
}

void device_file_asked() {
  asked_from_program = soft::calling_verbs_library() == nullptr;
}

void device_file_seen() {
  if (!asked_from_program || soft::calling_verbs_library() != nullptr) return;
  asked_from_program = false;
  soft::Problem problem;
  problem.set(ENOEXEC,
              "%s contains its libibverbs, and such a libibverbs loads no drivers; link it with libibverbs.so.1",
              program_invocation_short_name);
  complain(problem);
}

}  // namespace dapple::doors
