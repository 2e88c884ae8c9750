// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA devices of this network namespace as the kernel reports them, without opening any: by RDMA netlink, and from
// sysfs if netlink does not list a device or does not answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dapple::verbs {

struct RdmaPort {
  uint32_t number = 0;
  std::string state;           // "ACTIVE"; empty: unknown
  std::string physical_state;  // "LinkUp"
  std::string netdev;          // empty: none, or in another namespace
};

struct RdmaDevice {
  std::string name;
  std::string driver;     // "mlx5", "rxe"; empty: unknown
  std::string protocol;   // "ib", "roce", "iw"; empty: unknown
  std::string firmware;   // empty for devices without one
  std::string node_guid;  // "0200:00ff:fe00:0001"
  std::vector<RdmaPort> ports;
  bool by_netlink = false;  // otherwise from sysfs
};

// These block only on the kernel. Each throws only std::bad_alloc.
std::vector<RdmaDevice> rdma_devices();
// Empty if the kernel does not answer, because it has no RDMA or is old.
std::optional<std::vector<RdmaDevice>> rdma_devices_by_netlink();
// sysfs: "/sys", or a tree with the same layout. If it names no network device for a port's GID, one is found by its
// hardware address (IPoIB, iWARP). This function only reads files.
std::vector<RdmaDevice> rdma_devices_by_sysfs(const std::string& sysfs);

// The network device of a port, from sysfs if netlink names none; empty if there is no such port or it has none.
std::string netdev_of_port(const std::string& device, uint32_t port);

}  // namespace dapple::verbs
