// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/gid_location.hpp"

#include <string.h>

#include "provider/member/gid.hpp"

namespace dapple::dappled::rdma_cm {

GidLocation find_gid(const DeviceTable& devices, const Gid& gid, uint32_t netdev_index) {
  const bool scoped = soft::is_link_local(gid.data());
  for (uint32_t i = 0; i < devices.count(); i++) {
    const soft::DeviceInfo& device = devices.at(i);
    if (scoped && device.netdev_index != netdev_index) continue;
    for (uint32_t location = 0; location < soft::kMaxGids; location++) {
      const soft::GidEntry& entry = device.gids[location];
      if (location == soft::kDefaultGid && device.has_default_address == 0) continue;
      if (entry.valid != 0 && memcmp(entry.gid, gid.data(), gid.size()) == 0) return {&device, location};
    }
  }
  return {};
}

}  // namespace dapple::dappled::rdma_cm
