// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/dappled/rdma_cm/ids/address.hpp"

namespace dapple::dappled::rdma_cm {

// A host on a netdev's link: a destination itself, or the gateway to it.
struct Neighbour {
  uint32_t netdev_index = 0;
  Address address;  // without a port

  bool operator==(const Neighbour& other) const {
    return netdev_index == other.netdev_index && address.same_host(other.address);
  }
};

}  // namespace dapple::dappled::rdma_cm
