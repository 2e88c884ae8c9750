// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The messages of client and server. Both engines must be of the same release. Numbers are little-endian, as RDMA hosts
// are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fio/engine.hpp"

namespace dapple::fio {

inline constexpr std::uint32_t kMagic = 0x31706664;  // "dfp1"

// The most flush requests of one client that the server takes at a time.
inline constexpr std::uint32_t kMaxFlushes = 1024;

// The client's private data when it connects.
struct Greeting {
  std::uint32_t magic = kMagic;
  Method method = kMethod;
  std::uint8_t reserved[3] = {};
  // The most flush requests that it may have outstanding; 0 if it sends none.
  std::uint32_t flushes = 0;
};

// The server's private data when it accepts: descriptors of the server and then of its region.
struct Offer {
  std::uint32_t magic = kMagic;
  Method method = kMethod;
  // True if a flush by RDMA makes data persistent there.
  std::uint8_t direct_write_to_pmem = 0;
  std::uint8_t peer_size = 0;
  std::uint8_t region_size = 0;
  std::uint8_t descriptors[44] = {};
};
static_assert(sizeof(Offer) <= 56, "every network carries that many bytes");

// The request to make these bytes of the region persistent.
struct FlushRequest {
  std::uint64_t offset;
  std::uint64_t length;
};

// The answer that they are persistent, in the order of the requests.
struct FlushAnswer {
  // 0, or the errno value of the failure.
  std::uint32_t error;
  std::uint32_t reserved;
};

// The memory for one flush's messages on either side.
struct FlushSlot {
  FlushRequest request;
  FlushAnswer answer;
};

}  // namespace dapple::fio
