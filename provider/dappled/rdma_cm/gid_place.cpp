// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/gid_place.hpp"

#include <string.h>

#include "provider/member/gid.hpp"

namespace dapple::dappled::rdma_cm {

GidPlace find_gid(const DeviceTable& devices, const Gid& gid, uint32_t netdev_index) {
  const bool scoped = soft::is_link_local(gid.data());
  for (uint32_t i = 0; i < devices.count(); i++) {
    const soft::DeviceInfo& device = devices.at(i);
    if (scoped && device.netdev_index != netdev_index) continue;
    for (uint32_t place = 0; place < soft::kMaxGids; place++) {
      const soft::GidEntry& entry = device.gids[place];
      if (entry.valid != 0 && memcmp(entry.gid, gid.data(), gid.size()) == 0) return {&device, place};
    }
  }
  return {};
}

}  // namespace dapple::dappled::rdma_cm
