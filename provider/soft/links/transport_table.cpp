// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/links/transport_table.hpp"

#include <cassert>
#include <cstring>

namespace dapple::soft {
namespace {

bool same_key(const TransportRow& row, const TransportRow& key) {
  return row.slot == key.slot && row.transport == key.transport && row.ring == key.ring &&
         memcmp(row.source, key.source, sizeof row.source) == 0 &&
         memcmp(row.destination, key.destination, sizeof row.destination) == 0;
}

}  // namespace

void TransportTable::open(SlotTransports& shared) {
  const std::lock_guard lock(mutex_);
  shared_ = &shared;
  shared.ring_bytes.set(0);
  shared.most_ring_bytes.set(0);
  shared.unlisted_queue_pairs.set(0);
  shared.no_rings.store(Transport::kNone, std::memory_order_relaxed);
  // An owner that was killed may have left a row half written.
  for (uint32_t i = 0, end = end_of_rows(shared); i < end; i++) shared.rows[i].write({});
  shared.end.store(0, std::memory_order_release);
}

void TransportTable::set_no_rings(Transport why) {
  const std::lock_guard lock(mutex_);
  if (shared_ != nullptr) shared_->no_rings.store(why, std::memory_order_relaxed);
}

void TransportTable::set_most_ring_bytes(uint64_t most) {
  const std::lock_guard lock(mutex_);
  if (shared_ != nullptr) shared_->most_ring_bytes.set(most);
}

void TransportTable::add_ring_bytes(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  assert(bytes >= 0 || ring_bytes_ >= static_cast<uint64_t>(-bytes));
  ring_bytes_ += static_cast<uint64_t>(bytes);
  if (shared_ != nullptr) shared_->ring_bytes.set(ring_bytes_);
}

uint32_t TransportTable::take(const TransportRow& key) {
  const std::lock_guard lock(mutex_);
  uint32_t free = kMaxTransportRows;
  for (uint32_t i = 0; i < end_; i++) {
    if (rows_[i].queue_pairs == 0) {
      if (free == kMaxTransportRows) free = i;
    } else if (same_key(rows_[i], key)) {
      rows_[i].queue_pairs++;
      publish(i);
      return i + 1;
    }
  }
  if (free == kMaxTransportRows && end_ < kMaxTransportRows) free = end_++;
  if (free == kMaxTransportRows) {
    count_unlisted(unlisted_ + 1);
    return kUnlisted;
  }
  assert(free < end_ && rows_[free].queue_pairs == 0 && key.queue_pairs == 0);
  rows_[free] = key;
  rows_[free].queue_pairs = 1;
  rows_[free].right = key.slot < kMaxSlots ? rights_[key.slot] : Right::kNone;
  publish(free);
  return free + 1;
}

void TransportTable::leave(uint32_t place) {
  if (place == 0) return;
  const std::lock_guard lock(mutex_);
  assert(place != kUnlisted || unlisted_ > 0);
  if (place == kUnlisted) return count_unlisted(unlisted_ - 1);
  assert(place <= end_ && rows_[place - 1].queue_pairs > 0);
  rows_[place - 1].queue_pairs--;
  publish(place - 1);
  while (end_ > 0 && rows_[end_ - 1].queue_pairs == 0) end_--;
  assert(end_ == 0 || rows_[end_ - 1].queue_pairs > 0);
}

void TransportTable::end_ring(uint32_t ring, Transport why) {
  assert(ring != 0 && why != Transport::kSharedMemory);
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < end_; i++) {
    if (rows_[i].queue_pairs == 0 || rows_[i].ring != ring || rows_[i].transport != Transport::kSharedMemory) continue;
    rows_[i].transport = why;
    publish(i);
  }
}

void TransportTable::set_right(uint32_t slot, Right right) {
  if (slot == 0 || slot >= kMaxSlots) return;
  const std::lock_guard lock(mutex_);
  rights_[slot] = right;
  for (uint32_t i = 0; i < end_; i++) {
    if (rows_[i].queue_pairs == 0 || rows_[i].slot != slot || rows_[i].right == right) continue;
    rows_[i].right = right;
    publish(i);
  }
}

void TransportTable::count_unlisted(uint64_t count) {
  assert_held(mutex_);
  unlisted_ = count;
  if (shared_ != nullptr) shared_->unlisted_queue_pairs.set(count);
}

void TransportTable::publish(uint32_t index) {
  assert_held(mutex_);
  assert(index < kMaxTransportRows);
  if (shared_ == nullptr) return;
  if (index >= shared_->end.load(std::memory_order_relaxed)) {
    shared_->end.store(index + 1, std::memory_order_release);
  }
  shared_->rows[index].write(rows_[index]);
}

}  // namespace dapple::soft
