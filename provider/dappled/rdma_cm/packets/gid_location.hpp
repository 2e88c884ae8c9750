// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/dappled/network/device_table.hpp"
#include "provider/dappled/rdma_cm/ids/address.hpp"

namespace dapple::dappled::rdma_cm {

struct GidLocation {
  const soft::DeviceInfo* device = nullptr;  // null: no netdev has the address
  uint32_t index = 0;
};

// The device whose netdev has this address. The netdev's index counts for link-local addresses, which several devices
// may have.
GidLocation find_gid(const DeviceTable& devices, const Gid& gid, uint32_t netdev_index);
// The same among the devices that a program sees.
GidLocation find_gid(const DeviceTable& devices, const soft::Rails& rails, const Gid& gid, uint32_t netdev_index);

}  // namespace dapple::dappled::rdma_cm
