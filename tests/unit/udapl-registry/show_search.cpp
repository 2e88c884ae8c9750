// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Prints where the registry of this program would look for its configuration.
#include <cstdio>

#include "udapl/registry/configuration/conf_file.hpp"

int main() {
  const dapple::registry::ConfSearch search = dapple::registry::default_search();
  std::puts(search.override_path ? search.override_path : "no override");
  for (const std::string& path : search.paths) std::puts(path.c_str());
}
