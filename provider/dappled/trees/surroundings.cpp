// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/trees/surroundings.hpp"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <initializer_list>
#include <memory>
#include <string>

namespace dapple::dappled {
namespace {

// Of one folder. The kernel has at most 1,024 devices.
constexpr size_t kMaxEntries = 4096;

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* stream = opendir(folder.c_str());
  if (stream == nullptr) return names;
  while (const dirent* entry = readdir(stream)) {
    if (entry->d_name[0] != '.' && names.size() < kMaxEntries) names.emplace_back(entry->d_name);
  }
  closedir(stream);
  return names;
}

std::string real_path(const std::string& path) {
  char real[PATH_MAX];
  return realpath(path.c_str(), real) == nullptr ? std::string() : std::string(real);
}

bool is_folder(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

std::vector<face::KernelEntry> kernel_entries() {
  std::vector<face::KernelEntry> entries;
  for (const char* name : {"infiniband", "infiniband_verbs", "infiniband_mad"}) {
    const std::string folder = std::string("/sys/class/") + name;
    for (const std::string& entry : names_in(folder)) {
      // The attributes of a class, such as abi_version, are the tree's own.
      const std::string path = folder + '/' + entry;
      const std::string target = real_path(path);
      if (is_folder(target)) entries.push_back({path.substr(1), target});
    }
  }
  for (const std::string& entry : names_in("/dev/infiniband")) {
    entries.push_back({"dev/infiniband/" + entry, "/dev/infiniband/" + entry});
  }
  return entries;
}

void find_netdev_entries(face::ShownDevice& device) {
  if (device.attributes->has_pci == 0) return;
  device.netdev_folder = real_path(std::string("/sys/class/net/") + device.info->netdev);
  if (device.netdev_folder.empty()) return;
  for (std::string& name : names_in(device.netdev_folder)) device.netdev_entries.push_back(std::move(name));
}

}  // namespace dapple::dappled
