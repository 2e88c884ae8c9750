// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transports of a process' connections, in memory that it shares with dappled. dappled reads them at any time,
// without stopping anybody, and trusts none of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "provider/protocol/right.hpp"
#include "provider/protocol/shared_row.hpp"
#include "provider/protocol/transport.hpp"
#include "provider/protocol/wire_counters.hpp"

namespace dapple::soft {

// The queue pairs of a process that have one peer and one transport.
struct TransportRow {
  uint8_t source[16] = {};  // GIDs; zero for datagrams, which have no peer
  uint8_t destination[16] = {};
  uint16_t slot = 0;           // the peer's, if it is in this network namespace
  Right right = Right::kNone;  // the peer's, to copy in the process' memory
  Transport transport = Transport::kNone;
  uint32_t ring = 0;  // the number of the ring; 0: none
  uint32_t queue_pairs = 0;

  bool is_used() const { return queue_pairs != 0; }
};
static_assert(sizeof(TransportRow) == 48);

using SharedTransportRow = SharedRow<TransportRow>;

// Enough for most programs. The queue pairs of further peers are only counted.
inline constexpr uint32_t kMaxTransportRows = 300;

struct SlotTransports {
  Counter ring_bytes;               // of the rings that the process writes to
  Counter most_ring_bytes;          // their cap
  Counter unlisted_queue_pairs;     // that found no free row
  std::atomic<Transport> no_rings;  // why the process has none at all; kNone: it may have some
  // All rows from here on are free and were never written. Nobody looks at them, so their pages need no memory.
  std::atomic<uint32_t> end;
  SharedTransportRow rows[kMaxTransportRows];
};

// The number of rows to look at, whatever the process has written there.
inline uint32_t end_of_rows(const SlotTransports& transports) {
  const uint32_t end = transports.end.load(std::memory_order_acquire);
  return end < kMaxTransportRows ? end : kMaxTransportRows;
}

}  // namespace dapple::soft
