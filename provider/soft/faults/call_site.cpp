// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/call_site.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <string.h>

#include <string_view>

namespace dapple::soft {
namespace {

constexpr int kFrames = 16;

std::string_view file_of(const Dl_info& info) {
  const char* slash = strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

bool is_of_rdma(std::string_view file) {
  for (const std::string_view name : {"libdapple", "libibverbs", "librdmacm"}) {
    if (file.starts_with(name)) return true;
  }
  return false;
}

// FNV-1a.
void mix(uint64_t& hash, const void* bytes, size_t size) {
  for (size_t i = 0; i < size; i++) hash = (hash ^ static_cast<const uint8_t*>(bytes)[i]) * 0x100000001B3;
}

}  // namespace

CallSite call_site() {
  CallSite site;
  site.stack = 0xCBF29CE484222325;
  void* callers[kFrames];
  const int count = backtrace(callers, kFrames);
  for (int i = 0; i < count; i++) {
    Dl_info info;
    if (dladdr(callers[i], &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string_view file = file_of(info);
    if (file.starts_with("libdapple")) continue;
    const uint64_t offset = reinterpret_cast<uintptr_t>(callers[i]) - reinterpret_cast<uintptr_t>(info.dli_fbase);
    mix(site.stack, file.data(), file.size());
    mix(site.stack, &offset, sizeof offset);
    if (site.place[0] != '\0' || is_of_rdma(file)) continue;
    if (info.dli_sname != nullptr) {
      snprintf(site.place, sizeof site.place, "%.24s %.36s", file.data(), info.dli_sname);
    } else {
      snprintf(site.place, sizeof site.place, "%.40s+0x%llx", file.data(), static_cast<unsigned long long>(offset));
    }
  }
  return site;
}

}  // namespace dapple::soft
