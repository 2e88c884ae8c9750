// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/completion_queue.hpp"

#include <errno.h>

#include <bit>
#include <cassert>
#include <new>
#include <utility>

namespace dapple::soft {

int CompletionQueue::initialize(uint32_t size) {
  if (size == 0 || size > kMaxCompletions) return EINVAL;
  const uint32_t capacity = std::bit_ceil(size);
  ring_.reset(new (std::nothrow) roce::Completion[capacity]);
  if (ring_ == nullptr) return ENOMEM;
  capacity_ = capacity;
  size_.store(size, std::memory_order_relaxed);
  return 0;
}

void CompletionQueue::complete(const roce::Completion& completion) {
  const BiasedLock lock(mutex_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  uint32_t notice = 0;
  if (count == size_.load(std::memory_order_relaxed)) {
    if (overrun_.exchange(true, std::memory_order_relaxed)) return;
    notice = kOverrun;
  } else {
    assert(count < capacity_);
    ring_[(head_ + count) & (capacity_ - 1)] = completion;
    count_.store(count + 1, std::memory_order_release);
    // IBTA 11.4.2.2: an unsuccessful completion counts as solicited.
    const bool solicited = completion.solicited || completion.status != roce::CompletionStatus::kSuccess;
    if (armed_ == Armed::kAny || (armed_ == Armed::kSolicited && solicited)) {
      armed_ = Armed::kNo;
      notice = kEventDue;
    }
  }
  assert_consistent();
  if (notice != 0) notice_.fetch_or(notice, std::memory_order_release);
}

void CompletionQueue::forget(uint32_t qpn) {
  const BiasedLock lock(mutex_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const roce::Completion& completion = ring_[(head_ + i) & (capacity_ - 1)];
    if (completion.qpn != qpn) ring_[(head_ + kept++) & (capacity_ - 1)] = completion;
  }
  assert(kept <= count);
  count_.store(kept, std::memory_order_release);
}

int CompletionQueue::resize(uint32_t size) {
  if (size == 0 || size > kMaxCompletions) return EINVAL;
  const uint32_t capacity = std::bit_ceil(size);
  std::unique_ptr<roce::Completion[]> ring(new (std::nothrow) roce::Completion[capacity]);
  if (ring == nullptr) return ENOMEM;
  // The old ring is freed after the lock.
  const BiasedLock lock(mutex_);
  const uint32_t count = count_.load(std::memory_order_relaxed);
  if (count > size) return EINVAL;
  for (uint32_t i = 0; i < count; ++i) ring[i] = ring_[(head_ + i) & (capacity_ - 1)];
  std::swap(ring, ring_);
  capacity_ = capacity;
  head_ = 0;
  size_.store(size, std::memory_order_relaxed);
  assert_consistent();
  return 0;
}

void CompletionQueue::request_notification(bool solicited_only) {
  const BiasedLock lock(mutex_);
  if (!solicited_only) {
    armed_ = Armed::kAny;
  } else if (armed_ == Armed::kNo) {
    armed_ = Armed::kSolicited;
  }
}

}  // namespace dapple::soft
