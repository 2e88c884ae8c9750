// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/faults/call_site.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "provider/source_lines/debug_information.hpp"
#include "provider/source_lines/system_headers.hpp"
#include "provider/system/own_thread.hpp"

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
    if (site.caller == nullptr && !is_of_rdma(file)) site.caller = callers[i];
  }
  return site;
}

namespace {

struct Naming {
  const void* caller;
  char (&text)[64];
};

// With debug information.
void* name_by_line(void* argument) {
  const Naming& naming = *static_cast<Naming*>(argument);
  const source_lines::DebugInformation information;
  // The call is the instruction before the return address.
  const auto places = information.find(reinterpret_cast<uintptr_t>(naming.caller) - 1);
  for (const source_lines::SourcePlace& place : places) {
    if (place.line == 0 || place.function.empty() || source_lines::is_of_system(place.source)) continue;
    const std::unique_ptr<char, void (*)(void*)> readable(
        abi::__cxa_demangle(place.function.c_str(), nullptr, nullptr, nullptr), free);
    const bool is_mangled = place.function.starts_with("_Z") && readable != nullptr;
    std::string function = is_mangled ? readable.get() : place.function;
    function.resize(std::min(function.size(), function.find('(')));
    const std::string file = place.source.substr(place.source.rfind('/') + 1);
    snprintf(naming.text, sizeof naming.text, "%.28s at %.24s:%d", function.c_str(), file.c_str(), place.line);
    break;
  }
  return nullptr;
}

}  // namespace

void name_caller(const void* caller, char (&text)[64]) {
  text[0] = '\0';
  Dl_info info;
  if (caller == nullptr || dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return;
  Naming naming = {caller, text};
  run_with_room(name_by_line, &naming);
  if (text[0] != '\0') return;
  const std::string_view file = file_of(info);
  const uint64_t offset = reinterpret_cast<uintptr_t>(caller) - reinterpret_cast<uintptr_t>(info.dli_fbase);
  if (info.dli_sname != nullptr) {
    snprintf(text, sizeof text, "%.24s %.36s", file.data(), info.dli_sname);
  } else {
    snprintf(text, sizeof text, "%.40s+0x%llx", file.data(), static_cast<unsigned long long>(offset));
  }
}

}  // namespace dapple::soft
