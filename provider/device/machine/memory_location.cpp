// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/memory_location.hpp"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

namespace dapple::provider {
namespace {

// Goes to the parent folder. False if that is "devices", or if there is none.
bool go_up_to_devices(Path& path) {
  return path.go_up() && path.name() != "devices";
}

}  // namespace

dappledv_persistence persistence_of(const Path& device) {
  char buffer[32];
  for (Path path = device; !path.empty(); go_up_to_devices(path) ? void() : path.shorten(0)) {
    if (path.name().substr(0, 6) != "region") continue;
    const std::string_view word = read_line(path + "/persistence_domain", buffer);
    if (word == "cpu_cache") return DAPPLEDV_PERSISTENCE_CPU_CACHES;
    if (word == "memory_controller") return DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER;
  }
  return DAPPLEDV_PERSISTENCE_UNSPECIFIED;
}

bool is_on_cxl(const Path& device) {
  Path bus;
  for (Path path = device; !path.empty(); go_up_to_devices(path) ? void() : path.shorten(0)) {
    if (bus.resolve(path + "/subsystem") && bus.name() == "cxl") return true;
  }
  return false;
}

Path find_numbered_device(const Path& root, const char* kind, unsigned major, unsigned minor) {
  char number[32];
  snprintf(number, sizeof(number), "/%u:%u", major, minor);
  Path found;
  found.resolve(root + "/sys/dev/" + kind + number);
  return found;
}

dappledv_answer is_node_on_cxl(const Path& root, unsigned node) {
  const Path folder = root + "/sys/bus/dax/devices";
  DIR* const devices = opendir(folder.c_str());
  if (devices == nullptr) return has_cxl(root);
  bool found = false;
  char buffer[32];
  while (const dirent* entry = readdir(devices)) {
    if (found || entry->d_name[0] == '.') continue;
    const Path link = folder + "/" + entry->d_name;
    const std::string_view target = read_line(link + "/target_node", buffer);
    char* end = nullptr;
    if (target.empty() || strtol(target.data(), &end, 10) != static_cast<long>(node)) continue;
    Path device;
    found = device.resolve(link) && is_on_cxl(device);
  }
  closedir(devices);
  return found ? DAPPLEDV_ANSWER_YES : has_cxl(root);
}

dappledv_answer has_cxl(const Path& root) {
  // ACPI describes a machine's CXL by this device. Without ACPI the kernel cannot show that a machine lacks CXL.
  const bool acpi = look(root + "/sys/bus/acpi/devices") == Look::kThere;
  const bool described = look(root + "/sys/bus/acpi/devices/ACPI0017:00") == Look::kThere;
  return acpi && !described ? DAPPLEDV_ANSWER_NO : DAPPLEDV_ANSWER_UNKNOWN;
}

}  // namespace dapple::provider
