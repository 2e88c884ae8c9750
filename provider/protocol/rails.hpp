// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The devices that a program sees: one of each netdev, or several on one of them, which NCCL's users call rails.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "provider/protocol/messages.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxRails = kMaxDevices;

// Fixed width, without padding: part of an identity.
struct Rails {
  char netdev[16] = {};  // empty: lo
  uint32_t count = 0;    // 0: one device of each netdev
  uint32_t reserved = 0;

  // Tells whether the program sees this device.
  bool has(const DeviceInfo& device) const {
    if (count == 0) return device.rail == 0;
    const bool chosen =
        netdev[0] == '\0' ? device.loopback != 0 : strncmp(netdev, device.netdev, sizeof device.netdev) == 0;
    return chosen && device.rail < count;
  }
};
static_assert(std::has_unique_object_representations_v<Rails> && sizeof(Rails) % 8 == 0);
static_assert(kMaxRails <= UINT8_MAX);

// The device's number in its name, as its program counts.
inline uint32_t number_of(const DeviceInfo& device) {
  return device.rails != 0 ? device.rail : device.index - kFirstDeviceIndex;
}

}  // namespace dapple::soft
