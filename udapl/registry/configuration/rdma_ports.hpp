// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ports of this machine's RDMA devices and their network devices, as the kernel reports them. No RDMA library is
// needed, so that a registry can look before it loads one. Reads files, which blocks. Any thread. Throws only
// bad_alloc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ibverbs-glue/files.hpp"

namespace dapple::registry {

struct RdmaPort {
  std::string device;  // verbs name
  uint32_t number = 0;
  std::string netdev;  // empty: the port has no network device in this network namespace
  bool is_active = false;
  // The IP addresses of netdev, in numbers.
  std::vector<std::string> addresses;
};

// The ports in sysfs, in the order of the devices' names (mlx5_2 before mlx5_10), then of the ports' numbers. The ports
// that only RDMA netlink lists follow: the software devices of dapple-run, which have no file, and all devices in a
// container without sysfs. Empty without RDMA.
std::vector<RdmaPort> rdma_ports();
// Reads the ports from a tree with the layout of sysfs.
std::vector<RdmaPort> rdma_ports(const std::string& sysfs);

}  // namespace dapple::registry
