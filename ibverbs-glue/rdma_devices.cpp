// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "ibverbs-glue/rdma_devices.hpp"

#include <algorithm>
#include <utility>

#include "ibverbs-glue/files.hpp"

namespace dapple::verbs {
namespace {

bool lists(const std::vector<RdmaDevice>& devices, const std::string& name) {
  return std::any_of(devices.begin(), devices.end(), [&](const RdmaDevice& device) { return device.name == name; });
}

std::string netdev_in(const std::vector<RdmaDevice>& devices, const std::string& name, uint32_t number) {
  for (const RdmaDevice& device : devices) {
    if (device.name != name) continue;
    for (const RdmaPort& port : device.ports)
      if (port.number == number) return port.netdev;
  }
  return {};
}

}  // namespace

std::vector<RdmaDevice> rdma_devices() {
  std::vector<RdmaDevice> shown = rdma_devices_by_sysfs(sysfs_root());
  auto told = rdma_devices_by_netlink();
  if (!told) return shown;
  for (RdmaDevice& device : shown) {
    if (!lists(*told, device.name)) told->push_back(std::move(device));
  }
  return *std::move(told);
}

std::string netdev_of_port(const std::string& device, uint32_t port) {
  if (const auto told = rdma_devices_by_netlink()) {
    if (std::string netdev = netdev_in(*told, device, port); !netdev.empty()) return netdev;
  }
  return netdev_in(rdma_devices_by_sysfs(sysfs_root()), device, port);
}

}  // namespace dapple::verbs
