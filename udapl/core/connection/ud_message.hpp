// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The header before the consumer's private data when an address is resolved for datagrams. The connection manager's
// request (IBTA 12.11.1.1: SIDR_REQ) lacks the asking queue pair, so the header has it. The header also has the length
// of the consumer's part of the padded private data, and identifies it as such.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace dapple::udapl {

// In network byte order: 'D' 'A' 'U' and a version, 24 bits of queue pair number, 8 bits of length, and 32 bits that
// distinguish requests of the same queue pair; a request that the kernel sends again keeps them.
class UdMessage {
 public:
  static constexpr size_t kHeaderSize = 12;
  // The connection manager carries 216 bytes in a request, of which rdma_cm takes 36, and 136 in a reply or rejection.
  static constexpr size_t kMaxRequestData = 216 - 36 - kHeaderSize;
  static constexpr size_t kMaxReplyData = 136 - kHeaderSize;

  // At most kMaxRequestData bytes.
  UdMessage(uint32_t qp_num, uint32_t serial, std::span<const uint8_t> data)
      : bytes_{'D',
               'A',
               'U',
               kVersion,
               static_cast<uint8_t>(qp_num >> 16),
               static_cast<uint8_t>(qp_num >> 8),
               static_cast<uint8_t>(qp_num),
               static_cast<uint8_t>(data.size()),
               static_cast<uint8_t>(serial >> 24),
               static_cast<uint8_t>(serial >> 16),
               static_cast<uint8_t>(serial >> 8),
               static_cast<uint8_t>(serial)},
        size_(kHeaderSize + data.size()) {
    std::copy(data.begin(), data.end(), bytes_.begin() + kHeaderSize);
  }

  const uint8_t* data() const { return bytes_.data(); }
  uint8_t size() const { return static_cast<uint8_t>(size_); }

 private:
  static constexpr uint8_t kVersion = 1;
  friend struct UdReceived;
  std::array<uint8_t, kHeaderSize + kMaxRequestData> bytes_;
  size_t size_;
};

// A received message, with any contents. data points into it.
struct UdReceived {
  bool ours = false;  // else the rest is empty
  uint32_t qp_num = 0;
  uint32_t serial = 0;
  std::span<const uint8_t> data;

  explicit UdReceived(std::span<const uint8_t> message) {
    constexpr std::array<uint8_t, 4> kMark{'D', 'A', 'U', UdMessage::kVersion};
    ours = message.size() >= UdMessage::kHeaderSize && std::equal(kMark.begin(), kMark.end(), message.begin()) &&
           message.size() - UdMessage::kHeaderSize >= message[7];
    if (!ours) return;
    qp_num = uint32_t{message[4]} << 16 | uint32_t{message[5]} << 8 | message[6];
    serial = uint32_t{message[8]} << 24 | uint32_t{message[9]} << 16 | uint32_t{message[10]} << 8 | message[11];
    data = message.subspan(UdMessage::kHeaderSize, message[7]);
  }
};

}  // namespace dapple::udapl
