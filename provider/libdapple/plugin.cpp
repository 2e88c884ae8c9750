// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/plugin.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include <string_view>

namespace dapple::provider {
namespace {

struct PluginPath {
  char text[PATH_MAX];
};

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

}  // namespace

void* find_in_plugin(const char* name) {
  PluginPath path;
  void* plugin = find_plugin(path) ? dlopen(path.text, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (plugin == nullptr) return nullptr;
  void* function = dlsym(plugin, name);
  dlclose(plugin);
  return function;
}

}  // namespace dapple::provider
