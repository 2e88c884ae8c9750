// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/queues/receive_queue.hpp"

#include <errno.h>

#include <bit>
#include <cassert>
#include <utility>

namespace dapple::soft {

int ReceiveQueue::initialize(uint32_t depth, uint32_t max_segments, const QueueAllocator* allocator) {
  if (depth > kMaxRequests || max_segments > roce::kMaxSegments) return EINVAL;
  depth_.store(depth, std::memory_order_relaxed);
  max_segments_ = max_segments;
  if (depth == 0) return 0;
  const uint32_t room = std::bit_ceil(depth);
  mask_ = room - 1;
  allocator_ = allocator;
  slots_ = make_queue_array<Slot>(room, QueueMemory::kReceives, allocator);
  segments_ = make_queue_array<roce::Segment>(size_t{room} * max_segments, QueueMemory::kReceiveSegments, allocator);
  return slots_ == nullptr || segments_ == nullptr ? ENOMEM : 0;
}

inline void ReceiveQueue::copy_first(roce::ReceiveRequest& request) const {
  assert_consistent();
  assert(count_ > 0);
  const Slot& slot = slots_[head_];
  assert(slot.segment_count <= max_segments_);
  request.id = slot.id;
  request.segment_count = slot.segment_count;
  request.mark = slot.mark;
  copy_segments({&segments_[size_t{head_} * max_segments_], slot.segment_count}, request.segments);
}

bool ReceiveQueue::take(roce::ReceiveRequest& request) {
  const BiasedLock lock(mutex_);
  if (count_ == 0) return false;
  copy_first(request);
  head_ = (head_ + 1) & mask_;
  --count_;
  ++gone_;
  if (count_ < limit_) {
    limit_ = 0;
    limit_notice_.store(true, std::memory_order_release);
  }
  assert_consistent();
  return true;
}

bool ReceiveQueue::peek(roce::ReceiveRequest& request) {
  const BiasedLock lock(mutex_);
  if (count_ == 0) return false;
  copy_first(request);
  return true;
}

uint64_t ReceiveQueue::next_number() {
  const BiasedLock lock(mutex_);
  return gone_;
}

void ReceiveQueue::clear() {
  const BiasedLock lock(mutex_);
  gone_ += count_;
  count_ = 0;
  assert_consistent();
}

int ReceiveQueue::resize(uint32_t depth, std::optional<uint32_t> limit) {
  if (depth == 0 || depth > kMaxRequests) return EINVAL;
  const uint32_t room = std::bit_ceil(depth);
  QueueArray<Slot> slots = make_queue_array<Slot>(room, QueueMemory::kReceives, allocator_);
  QueueArray<roce::Segment> segments =
      make_queue_array<roce::Segment>(size_t{room} * max_segments_, QueueMemory::kReceiveSegments, allocator_);
  if (slots == nullptr || segments == nullptr) return ENOMEM;
  const BiasedLock lock(mutex_);
  const uint32_t wanted_limit = limit.value_or(limit_);
  if (depth < count_ || depth < wanted_limit) return EINVAL;
  for (uint32_t i = 0; i < count_; ++i) {
    const uint32_t from = (head_ + i) & mask_;
    slots[i] = slots_[from];
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): neither array is empty if there is a request.
    copy_segments({&segments_[size_t{from} * max_segments_], slots[i].segment_count},
                  &segments[size_t{i} * max_segments_]);
  }
  std::swap(slots, slots_);
  std::swap(segments, segments_);
  depth_.store(depth, std::memory_order_relaxed);
  mask_ = room - 1;
  head_ = 0;
  limit_ = wanted_limit;
  assert_consistent();
  return 0;
}

int ReceiveQueue::set_limit(uint32_t limit) {
  const BiasedLock lock(mutex_);
  if (limit > depth()) return EINVAL;
  limit_ = limit;
  assert_consistent();
  return 0;
}

uint32_t ReceiveQueue::count() {
  const BiasedLock lock(mutex_);
  return count_;
}

uint32_t ReceiveQueue::limit() {
  const BiasedLock lock(mutex_);
  return limit_;
}

}  // namespace dapple::soft
