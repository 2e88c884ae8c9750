// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The headers at the beginning of a message to a queue that matches tags: <infiniband/tm_types.h>.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <span>

#include "roce/host/request.hpp"

namespace dapple::soft {

inline constexpr size_t kTagHeaderSize = 16;         // struct ibv_tmh
inline constexpr size_t kRendezvousHeaderSize = 32;  // and struct ibv_rvh behind it
// A rendezvous with more bytes is left to the program.
inline constexpr size_t kMaxRendezvousMessage = 64;

struct TagHeader {
  enum class Kind : uint8_t {
    kNone,   // no tag, the end of a rendezvous, an unknown operation, or a message that is too short for its headers
    kEager,  // the bytes follow the header
    kRendezvous,  // the receiver reads the bytes from the sender's memory
  };
  Kind kind = Kind::kNone;
  roce::MatchedTag tag;
  // Of a rendezvous: the sender's memory.
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;
};

// `bytes`: the first ones of a message, kRendezvousHeaderSize of them if it has as many. Every byte may be hostile.
TagHeader parse_tag_header(std::span<const std::byte> bytes);

// Turns the headers of a rendezvous into the message that ends it.
void make_end_of_rendezvous(std::span<std::byte, kRendezvousHeaderSize> headers);

}  // namespace dapple::soft
