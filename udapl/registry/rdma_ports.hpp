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

// Those of sysfs, in the order of the devices' names (mlx5_2 before mlx5_10), then of the ports' numbers. Behind them
// those that only RDMA netlink lists: the software devices of dapple-run, which no file shows, and all devices in a
// container without sysfs. Empty where there is no RDMA.
std::vector<RdmaPort> rdma_ports();
// Those of a tree that looks like sysfs.
std::vector<RdmaPort> rdma_ports(const std::string& sysfs);

}  // namespace dapple::dat
