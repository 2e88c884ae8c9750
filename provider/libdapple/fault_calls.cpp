// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/fault_calls.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "provider/common/host_guards.hpp"
#include "provider/libdapple/plugin.hpp"

namespace dapple::provider {
namespace {

// A copy of libibverbs that the program has loaded, or null. A wheel's copy is called libibverbs-HASH.so.1.
void* open_verbs() {
  if (void* verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD)) return verbs;
  char path[PATH_MAX];
  const auto find = [](dl_phdr_info* object, size_t, void* found) {
    const char* slash = strrchr(object->dlpi_name, '/');
    if (slash == nullptr || strncmp(slash, "/libibverbs", 11) != 0) return 0;
    snprintf(static_cast<char*>(found), PATH_MAX, "%s", object->dlpi_name);
    return 1;
  };
  return dl_iterate_phdr(find, path) == 0 ? nullptr : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
}

// libibverbs loads its drivers when a program asks for devices.
void load_drivers() {
  void* verbs = open_verbs();
  if (verbs == nullptr) return;
  const auto get = reinterpret_cast<decltype(&ibv_get_device_list)>(dlsym(verbs, "ibv_get_device_list"));
  const auto release = reinterpret_cast<decltype(&ibv_free_device_list)>(dlsym(verbs, "ibv_free_device_list"));
  ibv_device** list = get == nullptr || release == nullptr ? nullptr : get(nullptr);
  if (list != nullptr) release(list);
  dlclose(verbs);
}

template <typename Function>
Function plugin_function(const char* name) {
  void* function = find_in_plugin(name);
  if (function == nullptr) {
    load_drivers();
    function = find_in_plugin(name);
  }
  return reinterpret_cast<Function>(function);
}

}  // namespace

int fault_next(const char* verb, int error) {
  const ErrnoGuard keep;
  const auto function = plugin_function<FaultNext>(kFaultNext);
  return function == nullptr ? ENOSYS : function(verb, error);
}

int fault_clear() {
  const ErrnoGuard keep;
  const auto function = plugin_function<FaultClear>(kFaultClear);
  return function == nullptr ? ENOSYS : function();
}

int fault_pending(const char* verb) {
  const ErrnoGuard keep;
  const auto function = reinterpret_cast<FaultPending>(find_in_plugin(kFaultPending));
  return function == nullptr ? 0 : function(verb);
}

}  // namespace dapple::provider
