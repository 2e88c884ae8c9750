// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The RDMA devices of this network namespace as the kernel tells them, without opening any: by RDMA netlink, and from
// sysfs what netlink does not list or a kernel does not answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dapple::verbs {

struct RdmaPort {
  uint32_t number = 0;
  std::string state;           // "ACTIVE"; empty: not told
  std::string physical_state;  // "LinkUp"
  std::string netdev;          // empty: none, or in another namespace
};

struct RdmaDevice {
  std::string name;
  std::string driver;     // "mlx5", "rxe"; empty: not told
  std::string protocol;   // "ib", "roce", "iw"; empty: not told
  std::string firmware;   // empty for devices without
  std::string node_guid;  // "0200:00ff:fe00:0001"
  std::vector<RdmaPort> ports;
  bool by_netlink = false;  // else from sysfs
};

// Blocks on the kernel only. Each throws std::bad_alloc and nothing else.
std::vector<RdmaDevice> rdma_devices();
// Nothing if the kernel does not answer: no RDMA in it, or an old one.
std::optional<std::vector<RdmaDevice>> rdma_devices_by_netlink();
// sysfs: "/sys", or a tree that looks like it. Where it names no network device for a port's GID, one is found by its
// hardware address (IPoIB, iWARP). This one asks nothing but files.
std::vector<RdmaDevice> rdma_devices_by_sysfs(const std::string& sysfs);

// The network device of a port, from sysfs where netlink names none; empty if there is no such port or it has none.
std::string netdev_of_port(const std::string& device, uint32_t port);

}  // namespace dapple::verbs
