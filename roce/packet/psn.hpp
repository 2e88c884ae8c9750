// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Packet sequence numbers: 24 bits, compared around the circle.
#pragma once

#include <cstdint>

namespace dapple::roce {

inline constexpr uint32_t kPsnMask = 0xFFFFFF;

constexpr uint32_t psn_add(uint32_t psn, uint32_t count) {
  return (psn + count) & kPsnMask;
}

// The distance from `base` to `psn`: -2^23 .. 2^23 - 1. IBTA 9.7.1: half of the circle is new, half is old.
constexpr int32_t psn_distance(uint32_t psn, uint32_t base) {
  return static_cast<int32_t>(((psn - base) & kPsnMask) << 8) >> 8;
}

constexpr bool psn_before(uint32_t psn, uint32_t other) {
  return psn_distance(psn, other) < 0;
}

}  // namespace dapple::roce
