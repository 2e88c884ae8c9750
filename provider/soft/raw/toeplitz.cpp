// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/toeplitz.hpp"

#include <string.h>

#include <cassert>

#include "roce/packet/big_endian.hpp"

namespace dapple::soft {

// For each bit of the input that is set, the 32 bits of the key that begin at the same place.
uint32_t toeplitz(std::span<const uint8_t, kHashKeySize> key, std::span<const uint8_t> input) {
  assert(input.size() + sizeof(uint32_t) <= key.size());
  uint32_t result = 0;
  uint32_t window = roce::load_be32(reinterpret_cast<const std::byte*>(key.data()));
  for (size_t i = 0; i < input.size(); i++) {
    for (int bit = 7; bit >= 0; bit--) {
      if ((input[i] >> bit & 1) != 0) result ^= window;
      window = window << 1 | (key[i + sizeof(window)] >> bit & 1u);
    }
  }
  return result;
}

uint32_t hash_of(const Frame& frame, const RxHash& hash) {
  uint8_t input[kHashKeySize - sizeof(uint32_t)];
  size_t size = 0;
  const auto add = [&](uint64_t field, const auto& value) {
    if ((hash.fields & field) == 0) return;
    assert(size + sizeof(value) <= sizeof(input));
    memcpy(&input[size], &value, sizeof(value));
    size += sizeof(value);
  };
  if (frame.network == Frame::Network::kIpv4) {
    add(IBV_RX_HASH_SRC_IPV4, frame.ipv4.src_ip);
    add(IBV_RX_HASH_DST_IPV4, frame.ipv4.dst_ip);
  } else if (frame.network == Frame::Network::kIpv6) {
    add(IBV_RX_HASH_SRC_IPV6, frame.ipv6.src_ip);
    add(IBV_RX_HASH_DST_IPV6, frame.ipv6.dst_ip);
  }
  if (frame.transport == Frame::Transport::kTcp) {
    add(IBV_RX_HASH_SRC_PORT_TCP, frame.ports.src_port);
    add(IBV_RX_HASH_DST_PORT_TCP, frame.ports.dst_port);
  } else if (frame.transport == Frame::Transport::kUdp) {
    add(IBV_RX_HASH_SRC_PORT_UDP, frame.ports.src_port);
    add(IBV_RX_HASH_DST_PORT_UDP, frame.ports.dst_port);
  }
  return toeplitz(hash.key, {input, size});
}

}  // namespace dapple::soft
