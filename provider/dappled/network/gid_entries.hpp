// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The entries of a device's GIDs in the table of devices.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>

#include "provider/protocol/messages.hpp"

namespace dapple::dappled {

// The GID's index; kMaxGids if it is not there.
inline uint32_t index_of(const soft::GidEntry (&gids)[soft::kMaxGids], const uint8_t* gid) {
  uint32_t index = 0;
  while (index < soft::kMaxGids && (gids[index].valid == 0 || memcmp(gids[index].gid, gid, 16) != 0)) index++;
  return index;
}

inline bool has_gid(const soft::DeviceInfo& device, const uint8_t* gid) {
  return index_of(device.gids, gid) != soft::kMaxGids;
}

inline void set_gid(soft::DeviceInfo& device, uint32_t index, const uint8_t* gid) {
  soft::GidEntry& entry = device.gids[index];
  assert(entry.valid == 0);
  entry = {};
  entry.valid = 1;
  entry.base_index = static_cast<uint8_t>(index);
  entry.netdev_index = device.netdev_index;
  memcpy(entry.gid, gid, sizeof entry.gid);
}

// The entry keeps its place.
inline void clear_gid(soft::GidEntry& entry) {
  const uint8_t base_index = entry.base_index;
  entry = {};
  entry.base_index = base_index;
}

}  // namespace dapple::dappled
