// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/udapl-registry/registry_rig.hpp"

#include <cstdio>
#include <cstdlib>

std::string line(const std::string& name, const FakeLog& log, const char* library, const char* version_and_threads,
                 const char* section) {
  char params[32];
  std::snprintf(params, sizeof params, "%p", static_cast<const void*>(&log));
  return name + " " + version_and_threads + " " + section + " " + library + " fake.1.0 \"" + params + "\" \"\"\n";
}

template <class Function>
void Dat::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library_, name));
  if (!function) std::abort();
}

Dat::Dat(const std::string& conf, int scope, const std::string& registry) : conf_path(folder.write("dat.conf", conf)) {
  ::setenv("DAT_OVERRIDE", conf_path.c_str(), 1);
  // This machine's RDMA devices are hidden; a test may make some in the folder.
  ::setenv("SYSFS_PATH", folder.path().c_str(), 1);
  library_ = ::dlopen(registry.c_str(), RTLD_NOW | scope);
  if (!library_) {
    std::puts(::dlerror());
    std::abort();
  }
  find(ia_openv, "dat_ia_openv");
  find(ia_close, "dat_ia_close");
  find(pz_create, "dat_pz_create");
  find(extension_op, "dat_extension_op");
  find(list_providers, "dat_registry_list_providers");
  find(add_provider, "dat_registry_add_provider");
  find(remove_provider, "dat_registry_remove_provider");
  find(providers_related, "dat_registry_providers_related");
}

Dat::~Dat() {
  ::dlclose(library_);
}

DAT_RETURN Dat::open(const char* name, DAT_IA_HANDLE* ia, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe) {
  DAT_EVD_HANDLE evd = nullptr;
  return ia_openv(const_cast<DAT_NAME_PTR>(name), 8, &evd, ia, major, minor, thread_safe);
}

bool loaded(const char* library) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle) ::dlclose(handle);
  return handle != nullptr;
}
