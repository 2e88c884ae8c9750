// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/cm/table.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>

namespace dapple::roce::cm {

namespace {

constexpr uint64_t mix(uint64_t value) {
  value = (value ^ value >> 31) * 0x9E3779B97F4A7C15;
  value = (value ^ value >> 29) * 0xD6E8FEB86659FD93;
  return value ^ value >> 32;
}

}  // namespace

bool Table::create(uint32_t capacity, uint64_t seed) {
  capacity_ = std::max<uint32_t>(capacity, 1);
  seed_ = seed;
  const uint32_t buckets = std::bit_ceil(capacity_);
  mask_ = buckets - 1;
  chunks_.reset(new (std::nothrow) std::unique_ptr<Record[]>[(capacity_ + kChunk - 1) / kChunk]);
  for (auto& index : buckets_) {
    index.reset(new (std::nothrow) Record* [buckets] {});
    if (index == nullptr) return false;
  }
  return chunks_ != nullptr && timers_.create(capacity_);
}

bool Table::add_chunk() {
  std::unique_ptr<Record[]> chunk(new (std::nothrow) Record[kChunk]);
  if (chunk == nullptr) return false;
  const uint32_t first = chunk_count_ * kChunk;
  assert(free_ == nullptr && first < capacity_);
  // The last record of the chunk first, so that they are given out in order.
  for (uint32_t i = std::min(kChunk, capacity_ - first); i-- > 0;) {
    chunk[i].id = first + i + 1;
    chunk[i].next_free = free_;
    free_ = &chunk[i];
  }
  chunks_[chunk_count_++] = std::move(chunk);
  return true;
}

Record* Table::allocate() {
  if (size_ == capacity_ || (free_ == nullptr && !add_chunk())) return nullptr;
  Record& record = *free_;
  free_ = record.next_free;
  const uint32_t place = static_cast<uint32_t>(record.id);
  assert(record.id == place && 0 < place && place <= capacity_);
  record = Record();
  if (++generation_ == 0) ++generation_;
  record.id = static_cast<Id>(generation_) << 32 | place;
  ++size_;
  return &record;
}

void Table::release(Record& record) {
  assert(size_ > 0 && find(record.id) == &record);
  timers_.cancel(record);
  for (const KeyKind kind : {kByLocalId, kByRemoteId, kByRemoteQpn}) take_out(record, kind);
  // Only the place of the id remains: it matches no valid id.
  record.id = static_cast<uint32_t>(record.id);
  record.next_free = free_;
  free_ = &record;
  --size_;
}

Record* Table::find(Id id) const {
  const uint32_t place = static_cast<uint32_t>(id);
  if (id >> 32 == 0 || place == 0 || place > chunk_count_ * kChunk || place > capacity_) return nullptr;
  Record& record = chunks_[(place - 1) / kChunk][(place - 1) % kChunk];
  return record.id == id ? &record : nullptr;
}

uint64_t Table::hash_of(uint64_t first, uint64_t second) const {
  return mix(mix(first ^ seed_) ^ second);
}

uint64_t Table::hash_of(const Gid& remote, uint64_t guid, uint32_t number) const {
  std::array<uint64_t, 2> halves;
  std::memcpy(halves.data(), remote.data(), remote.size());
  return hash_of(hash_of(hash_of(halves[0], halves[1]), guid), number);
}

Record* Table::by_local_id(uint32_t local_id) const {
  const uint64_t hash = hash_of(local_id, 0);
  for (Record* at = bucket(kByLocalId, hash); at != nullptr; at = at->chained[kByLocalId])
    if (at->local_id == local_id) return at;
  return nullptr;
}

Record* Table::by_remote_id(const Gid& remote, uint64_t guid, uint32_t remote_id) const {
  const uint64_t hash = hash_of(remote, guid, remote_id);
  for (Record* at = bucket(kByRemoteId, hash); at != nullptr; at = at->chained[kByRemoteId]) {
    const bool same = at->remote_guid == guid && at->remote_id == remote_id && at->path.remote == remote;
    if (same && !at->sidr) return at;
  }
  return nullptr;
}

Record* Table::by_request(const Gid& remote, uint32_t request_id) const {
  const uint64_t hash = hash_of(remote, 0, request_id);
  for (Record* at = bucket(kByRemoteId, hash); at != nullptr; at = at->chained[kByRemoteId])
    if (at->sidr && at->remote_id == request_id && at->path.remote == remote) return at;
  return nullptr;
}

Record* Table::by_remote_qpn(const Gid& remote, uint64_t guid, uint32_t qpn) const {
  const uint64_t hash = hash_of(remote, guid, qpn);
  for (Record* at = bucket(kByRemoteQpn, hash); at != nullptr; at = at->chained[kByRemoteQpn])
    if (at->remote_guid == guid && at->remote_qpn == qpn && at->path.remote == remote) return at;
  return nullptr;
}

void Table::enter(Record& record, KeyKind kind) {
  assert(find(record.id) == &record);
  take_out(record, kind);
  switch (kind) {
    case kByLocalId:
      record.hash[kind] = hash_of(record.local_id, 0);
      break;
    case kByRemoteId:
      record.hash[kind] = hash_of(record.path.remote, record.sidr ? 0 : record.remote_guid, record.remote_id);
      break;
    default:
      record.hash[kind] = hash_of(record.path.remote, record.remote_guid, record.remote_qpn);
      break;
  }
  Record*& first = bucket(kind, record.hash[kind]);
  record.chained[kind] = first;
  record.indexed[kind] = true;
  first = &record;
}

void Table::take_out(Record& record, KeyKind kind) {
  if (!record.indexed[kind]) return;
  Record** link = &bucket(kind, record.hash[kind]);
  while (*link != &record) {
    // Its key has changed while it was in the table.
    assert(*link != nullptr);
    link = &(*link)->chained[kind];
  }
  *link = record.chained[kind];
  record.indexed[kind] = false;
}

}  // namespace dapple::roce::cm
