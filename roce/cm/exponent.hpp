// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Times as messages have them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "roce/host/ports.hpp"

namespace dapple::roce::cm {

// The limits for times in messages: a peer can neither make us send without a pause nor keep a record here for hours.
// rdma_cm of Linux asks for 20, and for 24 in an MRA.
inline constexpr Time kMinWait = 1'000'000;
inline constexpr Time kMaxWait = Time{4096} << 24;

// 4.096 µs * 2^exponent, within these limits.
constexpr Time wait_of(uint8_t exponent) {
  return std::clamp(Time{4096} << std::min<uint8_t>(exponent, 31), kMinWait, kMaxWait);
}

// A requester chooses how long this side waits for its RTU and how long it remembers a rejection, and the requester may
// be a forged address. The wait is at least so long that the REPs to that address are few, and both end soon enough
// whatever the requester asks for. rdma_cm of Linux asks for 4.8 s and 9.7 s.
inline constexpr Time kMinWaitForPeer = 1'000'000'000;
inline constexpr Time kMaxWaitForPeer = 5'000'000'000;
inline constexpr Time kMaxHold = 30'000'000'000;

}  // namespace dapple::roce::cm
