// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// All records, found by id, by the ids and numbers in messages, and by deadline. It grows up to its capacity; its
// indexes do not.
#pragma once

#include <memory>

#include "roce/cm/record.hpp"
#include "roce/cm/timer_heap.hpp"

namespace dapple::roce::cm {

using Timers = TimerHeap<Record>;

class Table {
 public:
  // False if there is no memory. Strangers choose keys: `seed` keeps them from choosing ones that collide.
  bool create(uint32_t capacity, uint64_t seed);

  // A record with a new id; nullptr if the table is full or no memory is available.
  Record* allocate();
  void release(Record& record);
  uint32_t size() const { return size_; }

  // These return nullptr if there is none.
  Record* find(Id id) const;
  Record* by_local_id(uint32_t local_id) const;
  // By a peer's address, its CA and its comm id; for SIDR, by its address and its request id. A stranger who names
  // another host's CA finds nothing of that host's.
  Record* by_remote_id(const Gid& remote, uint64_t guid, uint32_t remote_id) const;
  Record* by_request(const Gid& remote, uint32_t request_id) const;
  Record* by_remote_qpn(const Gid& remote, uint64_t guid, uint32_t qpn) const;

  // Enters the record by its present fields, which must not change until it is taken out.
  void enter(Record& record, KeyKind kind);
  void take_out(Record& record, KeyKind kind);

  Timers& timers() { return timers_; }
  const Timers& timers() const { return timers_; }

 private:
  static constexpr uint32_t kChunk = 64;

  uint64_t hash_of(uint64_t first, uint64_t second) const;
  uint64_t hash_of(const Gid& remote, uint64_t guid, uint32_t number) const;
  Record*& bucket(KeyKind kind, uint64_t hash) const { return buckets_[kind][hash & mask_]; }
  bool add_chunk();

  uint32_t capacity_ = 0;
  uint64_t seed_ = 0;
  uint64_t mask_ = 0;
  uint32_t generation_ = 0;
  std::unique_ptr<std::unique_ptr<Record[]>[]> chunks_;
  uint32_t chunk_count_ = 0;
  uint32_t size_ = 0;
  Record* free_ = nullptr;
  std::array<std::unique_ptr<Record*[]>, kKeyKinds> buckets_;
  Timers timers_;
};

}  // namespace dapple::roce::cm
