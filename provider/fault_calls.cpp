// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/fault_calls.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <string_view>

#include "provider/keep_errno.hpp"

namespace dapple::provider {
namespace {

struct PluginPath {
  char text[PATH_MAX];
};

// The file of the plug-in, if the process has loaded it.
bool find_plugin(PluginPath& path) {
  return dl_iterate_phdr(
             [](dl_phdr_info* object, size_t, void* found) {
               const char* slash = strrchr(object->dlpi_name, '/');
               if (slash == nullptr || !std::string_view(slash).starts_with("/libdapple-rdmav")) return 0;
               snprintf(static_cast<PluginPath*>(found)->text, sizeof(PluginPath::text), "%s", object->dlpi_name);
               return 1;
             },
             &path) != 0;
}

// libibverbs loads its drivers when a program asks for devices.
void load_drivers() {
  void* verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (verbs == nullptr) return;
  const auto get = reinterpret_cast<decltype(&ibv_get_device_list)>(dlsym(verbs, "ibv_get_device_list"));
  const auto release = reinterpret_cast<decltype(&ibv_free_device_list)>(dlsym(verbs, "ibv_free_device_list"));
  ibv_device** list = get == nullptr || release == nullptr ? nullptr : get(nullptr);
  if (list != nullptr) release(list);
  dlclose(verbs);
}

template <typename Function>
Function plugin_function(const char* name) {
  PluginPath path;
  bool found = find_plugin(path);
  if (!found) {
    load_drivers();
    found = find_plugin(path);
  }
  void* plugin = found ? dlopen(path.text, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (plugin == nullptr) return nullptr;
  const auto function = reinterpret_cast<Function>(dlsym(plugin, name));
  // It stays loaded as long as the process.
  dlclose(plugin);
  return function;
}

}  // namespace

int fault_next(const char* verb, int error) {
  const KeepErrno keep;
  const auto function = plugin_function<FaultNext>(kFaultNext);
  return function == nullptr ? ENOSYS : function(verb, error);
}

int fault_clear() {
  const KeepErrno keep;
  const auto function = plugin_function<FaultClear>(kFaultClear);
  return function == nullptr ? ENOSYS : function();
}

}  // namespace dapple::provider
