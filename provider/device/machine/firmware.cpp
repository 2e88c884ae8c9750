// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/firmware.hpp"

#include <unistd.h>

#include <initializer_list>

#include "provider/device/machine/devicetree.hpp"

namespace dapple::provider {
namespace {

// The devices whose nodes may describe this one, the nearest first: for a PCI device only the parent of its host
// bridge, otherwise the device itself and all devices above it.
bool next_candidate(const DeviceLocation& location, Path& device) {
  if (!location.host_bridge.empty()) {
    if (!device.empty()) return false;
    device = location.host_bridge;
    return device.go_up();
  }
  if (device.empty()) {
    device = location.hardware;
    return true;
  }
  return device.go_up() && device.name() != "devices";
}

// The node that a device's of_node link points to, in the tree that can be read.
Firmware read_node(const Path& root, const Path& link) {
  constexpr std::string_view kBase = "/devicetree/base";
  char target[PATH_MAX];
  const ssize_t size = readlink(link.c_str(), target, sizeof(target));
  if (size <= 0) return Firmware::kUnreadable;
  std::string_view node(target, static_cast<size_t>(size));
  const size_t base = node.find(kBase);
  if (base == std::string_view::npos) return Firmware::kUnreadable;
  node.remove_prefix(base + kBase.size());

  // Containers hide the first; some still show the second.
  for (const char* location : {"/sys/firmware/devicetree/base", "/proc/device-tree"}) {
    Path tree;
    if (!tree.resolve(root + location)) continue;
    switch (find_dma_property(tree, node)) {
      case DmaProperty::kCoherent:
        return Firmware::kCoherent;
      case DmaProperty::kNoncoherent:
        return Firmware::kNoncoherent;
      case DmaProperty::kNone:
        return Firmware::kNoProperty;
      case DmaProperty::kUnreadable:
        break;
    }
  }
  return Firmware::kUnreadable;
}

}  // namespace

Firmware read_firmware(const Path& root, const DeviceLocation& location) {
  if (location.hardware.empty()) return Firmware::kUnreadable;
  for (Path device; next_candidate(location, device);) {
    const Path link = device + "/of_node";
    const Look seen = look(link);
    if (seen == Look::kThere) return read_node(root, link);
    if (seen == Look::kUnreadable) return Firmware::kUnreadable;
    // A host bridge has its own ACPI node; its parent may lack one.
    const Path& described = location.host_bridge.empty() ? device : location.host_bridge;
    if (look(described + "/firmware_node") == Look::kThere) return Firmware::kAcpi;
  }
  return Firmware::kNone;
}

}  // namespace dapple::provider
