// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/verbs_caller.hpp"

#include <dlfcn.h>
#include <stdint.h>
#include <unwind.h>

#include "provider/common/loaded_object.hpp"

namespace dapple::soft {
namespace {

// libibverbs calls us through the C library, the loader or libnl, and sanitizers wrap those.
constexpr int kMaxFrames = 64;

struct Search {
  const void* found = nullptr;
  const void* last_base = nullptr;  // of the library that was looked at last
  int frames = 0;
};

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  if (++search.frames > kMaxFrames) return _URC_NORMAL_STOP;
  // The address of a return may be the first one behind a function.
  const uintptr_t place = _Unwind_GetIP(frame);
  if (place == 0) return _URC_NORMAL_STOP;
  const auto* address = reinterpret_cast<const void*>(place - 1);
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fbase == search.last_base) return _URC_NO_REASON;
  search.last_base = info.dli_fbase;
  void* library = provider::open_verbs_at(address);
  if (library == nullptr) return _URC_NO_REASON;
  dlclose(library);
  search.found = address;
  return _URC_NORMAL_STOP;
}

}  // namespace

const void* calling_verbs_library() {
  Search search;
  _Unwind_Backtrace(look_at, &search);
  return search.found;
}

}  // namespace dapple::soft
