// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ports of this machine's RDMA devices and the network devices they belong to, as the kernel tells them. It takes
// no RDMA library, so that a registry can look before it loads one. Blocking file reads; any thread; throws bad_alloc
// only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ibverbs-glue/files.hpp"

namespace dapple::dat {

struct RdmaPort {
  std::string device;  // verbs name
  uint32_t number = 0;
  std::string netdev;  // empty: the port belongs to none, or to one of another network namespace
  bool is_active = false;
  // The IP addresses of netdev, numeric.
  std::vector<std::string> addresses;
};

// The ports of sysfs, in the order of the devices' names (mlx5_2 before mlx5_10), then of the ports' numbers. After
// them the ports that only RDMA netlink lists: the software devices of dapple-run, which no file shows, and all devices
// in a container without sysfs. Empty without RDMA.
std::vector<RdmaPort> rdma_ports();
// The ports of a tree in the form of sysfs.
std::vector<RdmaPort> rdma_ports(const std::string& sysfs);

}  // namespace dapple::dat
