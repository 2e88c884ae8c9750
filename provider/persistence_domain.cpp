// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/persistence_domain.hpp"

#include <dirent.h>

namespace dapple::provider {

dappledv_answer read_persistence_domain(const Path& root) {
  const Path regions = root + "/sys/bus/nd/devices";
  DIR* folder = opendir(regions.c_str());
  if (folder == nullptr) return DAPPLEDV_ANSWER_UNKNOWN;
  bool any = false;
  bool silent = false;
  bool outside = false;
  while (const dirent* entry = readdir(folder)) {
    if (!std::string_view(entry->d_name).starts_with("region")) continue;
    char buffer[64];
    const std::string_view domain = read_line(regions + "/" + entry->d_name + "/persistence_domain", buffer);
    any = true;
    silent = silent || domain.empty();
    outside = outside || (!domain.empty() && domain != "cpu_cache");
  }
  closedir(folder);
  if (outside) return DAPPLEDV_ANSWER_NO;
  return any && !silent ? DAPPLEDV_ANSWER_YES : DAPPLEDV_ANSWER_UNKNOWN;
}

}  // namespace dapple::provider
