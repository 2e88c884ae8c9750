// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The transports of a process' connections, in memory that it shares with dappled. dappled reads them at any time,
// without stopping anybody, and trusts none of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "provider/member/right.hpp"
#include "provider/member/transport.hpp"
#include "provider/member/wire_counters.hpp"

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
};
static_assert(sizeof(TransportRow) == 48);

// One writer, any number of readers.
class SharedTransportRow {
 public:
  void write(const TransportRow& row) {
    uint32_t words[kWords];
    memcpy(words, &row, sizeof words);
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < kWords; i++) words_[i].store(words[i], std::memory_order_relaxed);
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Makes it free, whatever its last writer has left.
  void reset() {
    version_.store(0, std::memory_order_relaxed);
    write({});
  }
  // False if the row is free, or is written all the time, or its writer was killed meanwhile.
  bool read(TransportRow& row) const {
    for (int tries = 0; tries < 100; tries++) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      if (before % 2 != 0) continue;
      uint32_t words[kWords];
      for (size_t i = 0; i < kWords; i++) words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) != before) continue;
      memcpy(static_cast<void*>(&row), words, sizeof words);
      return row.queue_pairs != 0;
    }
    return false;
  }

 private:
  static constexpr size_t kWords = sizeof(TransportRow) / sizeof(uint32_t);

  std::atomic<uint32_t> version_{0};  // odd while it is written
  std::atomic<uint32_t> words_[kWords] = {};
};

// More than there can be peers on this host.
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
