// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"

#include <string.h>

#include "provider/network/gid.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

// kMaxGids if the device lacks the address.
uint32_t index_of(const soft::DeviceInfo& device, const Gid& gid) {
  for (uint32_t index = 0; index < soft::kMaxGids; index++) {
    const soft::GidEntry& entry = device.gids[index];
    if (index == soft::kDefaultGid && device.has_default_address == 0) continue;
    if (entry.valid != 0 && memcmp(entry.gid, gid.data(), gid.size()) == 0) return index;
  }
  return soft::kMaxGids;
}

template <class Condition>
GidLocation find(const DeviceTable& devices, const Gid& gid, uint32_t netdev_index, Condition sees) {
  const bool scoped = soft::is_link_local(gid.data());
  GidLocation found;
  for (uint32_t i = 0; i < devices.count(); i++) {
    const soft::DeviceInfo& device = devices.at(i);
    if ((scoped && device.netdev_index != netdev_index) || !sees(device)) continue;
    // The table has all addresses of a netdev at its first device, also those of its further devices.
    if (found.device != nullptr && (device.rail == 0 || device.netdev_index != found.device->netdev_index)) continue;
    if (const uint32_t index = index_of(device, gid); index != soft::kMaxGids) found = {&device, index};
  }
  return found;
}

}  // namespace

GidLocation find_gid(const DeviceTable& devices, const Gid& gid, uint32_t netdev_index) {
  return find(devices, gid, netdev_index, [](const soft::DeviceInfo&) { return true; });
}

GidLocation find_gid(const DeviceTable& devices, const soft::Rails& rails, const Gid& gid, uint32_t netdev_index) {
  return find(devices, gid, netdev_index, [&](const soft::DeviceInfo& device) { return rails.has(device); });
}

}  // namespace dapple::dappled::rdma_cm
