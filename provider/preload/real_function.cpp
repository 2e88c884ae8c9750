// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/real_function.hpp"

#include <dlfcn.h>

#include "provider/common/loaded_object.hpp"
#include "provider/preload/real_dlsym.hpp"

namespace dapple::preload {
namespace {

void* find_in(void* library, const char* name, const char* version) {
  if (library == nullptr) return nullptr;
  void* function = real_dlvsym()(library, name, version);
  // It stays loaded: its function has been called.
  dlclose(library);
  return function;
}

}  // namespace

void* real_function(const char* soname, const char* name, const char* version, const void* caller) {
  if (void* next = real_dlvsym()(RTLD_NEXT, name, version)) return next;
  if (void* needed = find_in(provider::open_library_at(caller), name, version)) return needed;
  return find_in(dlopen(soname, RTLD_LAZY | RTLD_NOLOAD), name, version);
}

}  // namespace dapple::preload
