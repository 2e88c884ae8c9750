// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The Toeplitz hash of receive side scaling (RSS), and the fields of a frame that it covers.
#pragma once

#include <stdint.h>

#include <cstddef>
#include <span>

#include "provider/soft/raw/frame.hpp"

namespace dapple::soft {

// The key of NICs: as long as the longest input, two IPv6 addresses and two ports, and 32 bits more.
inline constexpr size_t kHashKeySize = 40;

// `input` has at most kHashKeySize - 4 bytes.
uint32_t toeplitz(std::span<const uint8_t, kHashKeySize> key, std::span<const uint8_t> input);

struct RxHash {
  uint8_t key[kHashKeySize] = {};
  uint64_t fields = 0;  // ibv_rx_hash_fields
};

inline constexpr uint64_t kHashFields = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 |
                                        IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP |
                                        IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP;

// Of those fields that the frame has: source address, destination address, source port, destination port. 0 if it has
// none of them.
uint32_t hash_of(const Frame& frame, const RxHash& hash);

}  // namespace dapple::soft
