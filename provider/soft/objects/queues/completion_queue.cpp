// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/queues/completion_queue.hpp"

#include <errno.h>

#include <bit>
#include <cassert>
#include <utility>

#include "provider/common/clock.hpp"

namespace dapple::soft {
namespace {

// IBTA 11.4.2.2: an unsuccessful completion counts as solicited.
bool counts_as_solicited(const roce::Completion& completion) {
  return completion.solicited || completion.status != roce::CompletionStatus::kSuccess;
}

}  // namespace

int CompletionQueue::initialize(uint32_t size, const QueueAllocator* allocator) {
  if (size == 0 || size > kMaxCompletions) return EINVAL;
  const uint32_t capacity = std::bit_ceil(size);
  ring_ = make_queue_array<roce::Completion>(capacity, QueueMemory::kCompletions, allocator);
  if (ring_ == nullptr) return ENOMEM;
  allocator_ = allocator;
  capacity_ = capacity;
  size_.store(size, std::memory_order_relaxed);
  return 0;
}

int CompletionQueue::keep_stamps() {
  assert(capacity_ != 0 && empty());
  stamps_ = make_queue_array<CompletionStamp>(capacity_, QueueMemory::kCompletions, allocator_);
  return stamps_ == nullptr ? ENOMEM : 0;
}

inline bool CompletionQueue::makes_event_due(const roce::Completion& completion) const {
  return armed_ == Armed::kAny || (armed_ == Armed::kSolicited && counts_as_solicited(completion));
}

inline bool CompletionQueue::append(const roce::Completion& completion) {
  const uint32_t count = count_.load(std::memory_order_relaxed);
  uint32_t notice = 0;
  const bool has_room = count != size_.load(std::memory_order_relaxed);
  if (!has_room) {
    if (overrun_.exchange(true, std::memory_order_relaxed)) return ignores_overruns_;
    notice = kOverrun;
  } else {
    assert(count < capacity_);
    ring_[place(count)] = completion;
    count_.store(count + 1, std::memory_order_release);
    if (makes_event_due(completion)) notice = note_event();
  }
  assert_consistent();
  if (notice != 0) notice_.fetch_or(notice, std::memory_order_release);
  return has_room || ignores_overruns_;
}

bool CompletionQueue::complete(const roce::Completion& completion) {
  const BiasedLock lock(mutex_);
  return append(completion);
}

CompletionStamp StampClocks::now() const {
  return {.raw = raw ? now_ns(kDeviceClock) : 0, .wall = wall ? now_ns(CLOCK_REALTIME) : 0, .tag = {}};
}

bool CompletionQueue::complete_stamped(const roce::Completion& completion, StampClocks clocks,
                                       const roce::MatchedTag& tag) {
  assert(stamps_ != nullptr);
  const BiasedLock lock(mutex_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  // Under the lock: no completion is older than the one before it.
  if (count < size_.load(std::memory_order_relaxed)) {
    stamps_[place(count)] = clocks.now();
    stamps_[place(count)].tag = tag;
  }
  return append(completion);
}

bool CompletionQueue::take_stamped(roce::Completion& completion, CompletionStamp& stamp) {
  assert(stamps_ != nullptr);
  return take(1, [&](const roce::Completion& taken, uint32_t) {
           completion = taken;
           stamp = stamps_[static_cast<size_t>(&taken - ring_.get())];
         }) != 0;
}

uint32_t CompletionQueue::note_event() {
  assert(armed_ != Armed::kNo);
  if (++held_ < moderation_) return held_ == 1 ? uint32_t{kEventHeld} : 0;
  held_ = held_before_any_ = 0;
  armed_ = Armed::kNo;
  return kEventDue;
}

bool CompletionQueue::release_event() {
  assert(held_ != 0);
  held_ = held_before_any_ = 0;
  armed_ = Armed::kNo;
  assert_consistent();
  return true;
}

bool CompletionQueue::moderate(uint32_t count) {
  const BiasedLock lock(mutex_);
  moderation_ = count;
  return held_ != 0 && held_ >= count && release_event();
}

bool CompletionQueue::end_hold() {
  const BiasedLock lock(mutex_);
  return held_ != 0 && release_event();
}

CompletionQueue::Held CompletionQueue::held_of(uint32_t qpn) const {
  const bool is_wide = armed_ == Armed::kAny;
  // The newest held ones have come since the request for all, and so without any between them.
  uint32_t left_of_any = is_wide ? held_ - held_before_any_ : 0;
  uint32_t left = is_wide ? held_before_any_ : held_;
  Held found;
  for (uint32_t i = count_.load(std::memory_order_relaxed); i > 0 && left_of_any + left > 0; --i) {
    const roce::Completion& completion = ring_[place(i - 1)];
    if (left_of_any > 0) {
      --left_of_any;
      if (completion.qpn == qpn) ++found.all;
    } else if (counts_as_solicited(completion)) {
      --left;
      if (completion.qpn != qpn) continue;
      ++found.all;
      if (is_wide) ++found.before_any;
    }
  }
  assert(found.all <= held_ && found.before_any <= held_before_any_);
  return found;
}

void CompletionQueue::forget(uint32_t qpn) {
  const BiasedLock lock(mutex_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  const Held dropped = held_of(qpn);
  held_ -= dropped.all;
  held_before_any_ -= dropped.before_any;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const roce::Completion& completion = ring_[place(i)];
    if (completion.qpn == qpn) continue;
    const uint32_t to = place(kept++);
    if (stamps_ != nullptr) stamps_[to] = stamps_[place(i)];
    ring_[to] = completion;
  }
  assert(kept <= count);
  count_.store(kept, std::memory_order_release);
  assert_consistent();
}

int CompletionQueue::resize(uint32_t size) {
  if (size == 0 || size > kMaxCompletions) return EINVAL;
  const uint32_t capacity = std::bit_ceil(size);
  QueueArray<roce::Completion> ring =
      make_queue_array<roce::Completion>(capacity, QueueMemory::kCompletions, allocator_);
  QueueArray<CompletionStamp> stamps;
  if (stamps_ != nullptr) stamps = make_queue_array<CompletionStamp>(capacity, QueueMemory::kCompletions, allocator_);
  if (ring == nullptr || (stamps == nullptr && stamps_ != nullptr)) return ENOMEM;
  // The old ones are freed after the lock.
  const BiasedLock lock(mutex_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  if (count > size) return EINVAL;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t to = (taken() + i) & (capacity - 1);
    ring[to] = ring_[place(i)];
    if (stamps != nullptr) stamps[to] = stamps_[place(i)];
  }
  std::swap(ring, ring_);
  std::swap(stamps, stamps_);
  capacity_ = capacity;
  size_.store(size, std::memory_order_relaxed);
  assert_consistent();
  return 0;
}

void CompletionQueue::request_notification(bool solicited_only) {
  const BiasedLock lock(mutex_);
  if (!solicited_only) {
    if (armed_ == Armed::kSolicited) held_before_any_ = held_;
    armed_ = Armed::kAny;
  } else if (armed_ == Armed::kNo) {
    armed_ = Armed::kSolicited;
  }
  assert_consistent();
}

}  // namespace dapple::soft
