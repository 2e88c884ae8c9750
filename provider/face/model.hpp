// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's files about RDMA devices: the parts of /sys and /dev, as Tree with the paths "sys/..." and "dev/...".
// Nothing here looks at the system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "provider/face/counts.hpp"
#include "provider/face/tree.hpp"
#include "provider/protocol/device_attributes.hpp"
#include "provider/protocol/messages.hpp"

namespace dapple::face {

// A device, and what the tree shows beside DeviceInfo.
struct ShownDevice {
  const soft::DeviceInfo* info = nullptr;
  const soft::DeviceAttributes* attributes = nullptr;
  DeviceCounts counts;
  // The real folder of the netdev, "/sys/devices/virtual/net/eth0", and the names in it. Only for a device with a PCI
  // function.
  std::string netdev_folder;
  std::vector<std::string> netdev_entries;
};

// An entry of a folder that the kernel has, too: class/infiniband, class/infiniband_verbs or /dev/infiniband.
struct KernelEntry {
  std::string path;    // in the tree: "sys/class/infiniband/mlx5_0"
  std::string target;  // absolute
};

// Everything.
Tree tree_of(const std::vector<ShownDevice>& devices, const std::vector<KernelEntry>& kernels);
// The files whose contents change although the device does not: its counters.
void add_live_files(Tree& tree, const ShownDevice& device);

// A file in each device's folder of class_tree_of(), which shows that the folder is ours.
inline constexpr char kMark[] = ".dapple";

// One folder with a folder for each device, as a container mounts it at /sys/class/infiniband: without links that lead
// out of it. `unreadable`: the target of the links that stand for entries whose read() fails.
Tree class_tree_of(const std::vector<ShownDevice>& devices, const char* unreadable);
// add_live_files() for class_tree_of().
void add_live_class_files(Tree& tree, const ShownDevice& device);

// The device's folder in tree_of(): "sys/devices/virtual/infiniband/dapple0".
std::string folder_of(const ShownDevice& device);

}  // namespace dapple::face
