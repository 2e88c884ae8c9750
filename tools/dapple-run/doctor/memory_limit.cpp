// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/memory_limit.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace dapple::run::doctor {
namespace {

// The first version writes a number of this size if there is no limit.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

struct Hierarchy {
  // What stands between the colons of its line in /proc/self/cgroup.
  const char* controllers;
  const char* folder;
  const char* file;
};
constexpr Hierarchy kHierarchies[] = {{"", "/sys/fs/cgroup", "/memory.max"},
                                      {"memory", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes"}};

void lower(std::optional<uint64_t>& limit, const std::string& file) {
  uint64_t bytes = 0;
  // The word "max" is no number.
  if (!(std::ifstream(file) >> bytes) || bytes >= kNoLimit) return;
  limit = std::min(limit.value_or(bytes), bytes);
}

}  // namespace

std::optional<uint64_t> memory_limit() {
  std::optional<uint64_t> limit;
  std::ifstream groups("/proc/self/cgroup");
  // A line is NUMBER:CONTROLLERS:PATH.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    for (const Hierarchy& hierarchy : kHierarchies) {
      if (controllers != hierarchy.controllers) continue;
      // A container may see the path of the machine, and have its own group at the top.
      for (std::string path = line.substr(second + 1); path.starts_with('/'); path.resize(path.rfind('/')))
        if (path.back() != '/') lower(limit, hierarchy.folder + path + hierarchy.file);
      lower(limit, std::string(hierarchy.folder) + hierarchy.file);
    }
  }
  return limit;
}

}  // namespace dapple::run::doctor
