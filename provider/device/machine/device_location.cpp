// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/device_location.hpp"

namespace dapple::provider {
namespace {

// Tells whether the text matches the pattern, in which x is any hexadecimal digit.
bool is_like(std::string_view text, std::string_view pattern) {
  if (text.size() != pattern.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (pattern[i] == 'x' ? !hex : text[i] != pattern[i]) return false;
  }
  return true;
}

// Domains have four digits, or five where firmware does not number them (a volume management device).
bool is_function(std::string_view name) {
  return is_like(name, "xxxx:xx:xx.x") || is_like(name, "xxxxx:xx:xx.x");
}

bool is_host_bridge(std::string_view name) {
  return is_like(name, "pcixxxx:xx") || is_like(name, "pcixxxxx:xx");
}

}  // namespace

DeviceLocation find_device(const Path& ibdev) {
  DeviceLocation location;
  if (ibdev.empty() || !location.hardware.resolve(ibdev + "/device")) return location;
  // Walks upwards from the device: if a PCI domain lies within another one, the inner domain is the device's.
  for (Path path = location.hardware; !path.empty() && path.name() != "devices"; path.go_up()) {
    if (location.pci_function.empty() && is_function(path.name())) location.pci_function = path;
    if (location.pci_function.empty() || !is_host_bridge(path.name())) continue;
    location.host_bridge = path;
    return location;
  }
  return location;
}

}  // namespace dapple::provider
