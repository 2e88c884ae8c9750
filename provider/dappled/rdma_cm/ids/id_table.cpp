// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/ids/id_table.hpp"

#include <cassert>

namespace dapple::dappled::rdma_cm {

uint32_t IdTable::unused() {
  assert(size_ < kNumbers);
  while (has(next_)) next_ = (next_ + 1) % kNumbers;
  const uint32_t number = next_;
  next_ = (next_ + 1) % kNumbers;
  assert(number < kNumbers && !has(number));
  return number;
}

void IdTable::keep_away(uint32_t number) {
  const uint32_t distance = (next_ - number) % kNumbers;
  if (distance < kNumbers / 4 || distance > kNumbers / 4 * 3) next_ = (number + kNumbers / 2) % kNumbers;
}

bool IdTable::add(CmId& id) {
  assert(id.channel != nullptr && id.number < kNumbers && id.key == 0 && id.same_bucket == nullptr);
  if (size_ == kMax || find(*id.channel, id.number) != nullptr) return false;
  id.key = ++added_ * kNumbers + id.number;
  CmId*& bucket = buckets_[id.number % kBuckets];
  id.same_bucket = bucket;
  bucket = &id;
  size_++;
  return true;
}

void IdTable::remove(CmId& id) {
  CmId** link = &buckets_[id.number % kBuckets];
  while (*link != &id) {
    // Its number has changed since add().
    assert(*link != nullptr);
    link = &(*link)->same_bucket;
  }
  assert(size_ > 0);
  *link = id.same_bucket;
  size_--;
}

CmId* IdTable::find(const Channel& channel, uint32_t number) const {
  CmId* id = bucket(number);
  while (id != nullptr && (id->number != number || id->channel != &channel)) id = id->same_bucket;
  return id;
}

CmId* IdTable::find_by_key(uint64_t key) const {
  CmId* id = bucket(static_cast<uint32_t>(key % kNumbers));
  while (id != nullptr && id->key != key) id = id->same_bucket;
  return id;
}

bool IdTable::has(uint32_t number) const {
  const CmId* id = bucket(number);
  while (id != nullptr && id->number != number) id = id->same_bucket;
  return id != nullptr;
}

}  // namespace dapple::dappled::rdma_cm
