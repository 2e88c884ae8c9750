// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-info's questions about the transports of connections, program by program. dappled keeps nothing between them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "provider/protocol/messages.hpp"
#include "provider/protocol/transport_rows.hpp"

namespace dapple::soft {

struct TransportsRequest {
  MessageHeader header;
  uint32_t slot = 0;   // asks for the program with this slot, or with the next higher one
  uint32_t first = 0;  // the place of the first wanted row
};

struct TransportsReply {
  static constexpr uint32_t kRows = 40;

  MessageHeader header;
  uint32_t slot = 0;                      // 0: there is no such program
  uint32_t process = 0;                   // its number where dappled runs; 0 if it is not visible there
  Transport no_rings = Transport::kNone;  // as in SlotTransports
  uint32_t next = 0;                      // the place to continue at; 0: these are the last rows
  uint64_t ring_bytes = 0;
  uint64_t most_ring_bytes = 0;
  uint64_t unlisted_queue_pairs = 0;
  uint32_t count = 0;
  uint32_t reserved = 0;
  TransportRow rows[kRows];
};

static_assert(sizeof(TransportsReply) <= kMaxMessageSize && std::is_trivially_copyable_v<TransportsReply>);

}  // namespace dapple::soft
