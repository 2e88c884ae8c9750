// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Frames for tests of raw packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>

namespace dapple::tests {

struct FrameBytes {
  std::byte bytes[256] = {};
  size_t size = 0;

  FrameBytes& add(std::initializer_list<int> values) {
    for (const int value : values) bytes[size++] = static_cast<std::byte>(value);
    return *this;
  }
  FrameBytes& add16(unsigned value) { return add({static_cast<int>(value >> 8), static_cast<int>(value & 0xFF)}); }
  std::span<std::byte> all() { return {bytes, size}; }
};

constexpr uint16_t kSourcePort = 2794;

// From 66.9.149.187 port 2794 to 161.142.100.80, with four bytes of payload. Without checksums.
inline FrameBytes udp_frame(uint16_t port, bool tagged = false, int protocol = 17) {
  FrameBytes frame;
  frame.add({2, 0, 0, 0, 0, 0xB, 2, 0, 0, 0, 0, 0xA});
  if (tagged) frame.add({0x81, 0, 0x60, 5});
  frame.add({8, 0});
  const int header = protocol == 6 ? 20 : 8;
  frame.add({0x45, 0x10, 0, 20 + header + 4, 0, 1, 0x40, 0, 64, protocol, 0, 0});
  frame.add({66, 9, 149, 187, 161, 142, 100, 80});
  frame.add16(kSourcePort).add16(port);
  if (protocol == 6) {
    frame.add({0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0});
  } else {
    frame.add16(12).add16(0);
  }
  frame.add({'d', 'a', 't', 'a'});
  while (frame.size < 60) frame.add({0});
  return frame;
}

// From 3ffe:2501:200:1fff::7 port 2794 to 3ffe:2501:200:3::1.
inline FrameBytes ipv6_frame(uint16_t port) {
  FrameBytes frame;
  frame.add({2, 0, 0, 0, 0, 0xB, 2, 0, 0, 0, 0, 0xA, 0x86, 0xDD});
  frame.add({0x61, 0x23, 0x45, 0x67, 0, 20, 0, 63});  // a hop-by-hop header follows
  frame.add({0x3F, 0xFE, 0x25, 1, 2, 0, 0x1F, 0xFF, 0, 0, 0, 0, 0, 0, 0, 7});
  frame.add({0x3F, 0xFE, 0x25, 1, 2, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1});
  frame.add({17, 0, 1, 4, 0, 0, 0, 0});
  frame.add16(kSourcePort).add16(port).add16(12).add16(0);
  return frame.add({'d', 'a', 't', 'a'});
}

}  // namespace dapple::tests
