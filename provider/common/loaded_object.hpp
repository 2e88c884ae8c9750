// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Libraries of this process by an address in them. A process may have several copies of libibverbs: a Python wheel
// brings one under a name of its own, so no name finds it. From any thread.
#pragma once

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <link.h>

namespace dapple::provider {

// Every release of libibverbs has this function, and libdapple-preload.so lacks it.
inline constexpr const char* kVerbsMark = "ibv_query_device";

// A handle of the library that contains the address, for dlclose(). Null for the program itself, and if no library
// contains the address.
inline void* open_library_at(const void* address) {
  Dl_info info;
  void* extra = nullptr;
  if (address == nullptr || dladdr1(address, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return nullptr;
  const char* name = static_cast<const link_map*>(extra)->l_name;
  return name == nullptr || name[0] == '\0' ? nullptr : dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

// Tells whether the library itself defines the name. dlsym() also looks into the libraries that it needs.
inline bool defines(void* library, const char* name) {
  const void* symbol = dlsym(library, name);
  void* map = nullptr;
  Dl_info info;
  void* extra = nullptr;
  return symbol != nullptr && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 &&
         dladdr1(symbol, &info, &extra, RTLD_DL_LINKMAP) != 0 && extra == map;
}

// The same, for a libibverbs only.
inline void* open_verbs_at(const void* address) {
  void* library = open_library_at(address);
  if (library == nullptr || defines(library, kVerbsMark)) return library;
  dlclose(library);
  return nullptr;
}

// The copy of libibverbs that a context came from. ibv_open_device() sets query_port to a function of its own copy. A
// context that does not show its copy is taken for one of libibverbs.so.1. Null if that is not loaded, either.
inline void* open_verbs_of(ibv_context* context) {
  const verbs_context* extended = context == nullptr ? nullptr : verbs_get_ctx(context);
  void* library = extended == nullptr ? nullptr : open_verbs_at(reinterpret_cast<const void*>(extended->query_port));
  return library != nullptr ? library : dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace dapple::provider
