// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This process' list of the transports of its connections. It decides nothing; dapple-info shows it.
#pragma once

#include <cstdint>

#include "provider/common/mutex.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/transport_rows.hpp"

namespace dapple::soft {

// Internally locked.
class TransportTable {
 public:
  // From now on dappled sees the rows. Removes the rows that the slot's last owner has left.
  void open(SlotTransports& shared);
  void set_no_rings(Transport why);
  void set_most_ring_bytes(uint64_t most);
  // More bytes in rings, or fewer.
  void add_ring_bytes(int64_t bytes);

  // Counts a queue pair; `key` is the row without the number of queue pairs and the right. Returns the place for
  // leave(), never 0.
  uint32_t take(const TransportRow& key);
  // 0: none was taken.
  void leave(uint32_t place);
  // The ring has come to an end: its queue pairs use UDP from now on.
  void end_ring(uint32_t ring, Transport why);
  // The right of the slot's owner has changed. `slot` may be any number.
  void set_right(uint32_t slot, Right right);

 private:
  static constexpr uint32_t kUnlisted = UINT32_MAX;

  void publish(uint32_t index);
  void count_unlisted(uint64_t count);

  Mutex mutex_{LockRank::kTransportTable};
  SlotTransports* shared_ = nullptr;
  uint64_t ring_bytes_ = 0;
  uint64_t unlisted_ = 0;
  uint32_t end_ = 0;  // rows in use are below
  TransportRow rows_[kMaxTransportRows];
  Right rights_[kMaxSlots] = {};  // by slot
};

}  // namespace dapple::soft
