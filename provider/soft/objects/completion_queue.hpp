// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The completions of a completion queue, without libibverbs' object around it (cq_verbs.cpp).
//
// complete() is called under the locks of queue pairs, so it makes no system call: it leaves a note that an event is
// due, and its caller fetches the note with take_notice() after it has released the locks. The lock inside is a leaf.
#pragma once

#include <stdint.h>

#include <atomic>
#include <cassert>
#include <memory>

#include "provider/soft/locks/biased_mutex.hpp"
#include "roce/ports.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxCompletions = 1 << 20;

class CompletionQueue final : public roce::CompletionSink {
 public:
  // 0, EINVAL for a size of 0 or beyond kMaxCompletions, or ENOMEM. The queue may be larger than requested.
  int initialize(uint32_t size);
  uint32_t size() const { return size_.load(std::memory_order_relaxed); }

  // Drops the completion if there is no room, and notes an overrun once.
  void complete(const roce::Completion& completion) override;

  // Takes up to `count` of the oldest completions: calls use(completion, number) for each, under the lock.
  template <typename Use>
  uint32_t take(uint32_t count, Use use) {
    if (empty()) return 0;
    const BiasedLock lock(mutex_);
    const uint32_t there = count_.load(std::memory_order_relaxed);
    if (count > there) count = there;
    for (uint32_t i = 0; i < count; ++i) use(ring_[(head_ + i) & (capacity_ - 1)], i);
    head_ = (head_ + count) & (capacity_ - 1);
    count_.store(there - count, std::memory_order_release);
    takes_.store(takes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    assert_consistent();
    return count;
  }
  uint32_t take(roce::Completion* completions, uint32_t count) {
    return take(count, [&](const roce::Completion& completion, uint32_t i) { completions[i] = completion; });
  }
  // True if a completion has ever been dropped.
  bool has_overrun() const { return overrun_.load(std::memory_order_relaxed); }
  // The number of calls that took completions, modulo 2^32.
  uint32_t takes() const { return takes_.load(std::memory_order_relaxed); }
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // Drops the completions of a queue pair.
  void forget(uint32_t qpn);

  // Completions stay. EINVAL: they do not fit; or as initialize().
  int resize(uint32_t size);

  // The next completion (or the next solicited or failed one) makes an event due, once. A later request for solicited
  // completions does not narrow a request for all.
  void request_notification(bool solicited_only);

  // Bits that complete() has left since the last call.
  enum Notice : uint32_t { kEventDue = 1, kOverrun = 2 };
  uint32_t take_notice() { return notice_.exchange(0, std::memory_order_acq_rel); }
  bool has_notice() const { return notice_.load(std::memory_order_relaxed) != 0; }

 private:
  enum class Armed : uint8_t { kNo, kSolicited, kAny };

  // Asserts the conditions that hold between two calls. The caller holds the lock.
  void assert_consistent() const {
    assert((capacity_ & (capacity_ - 1)) == 0 && size_.load(std::memory_order_relaxed) <= capacity_);
    assert(count_.load(std::memory_order_relaxed) <= size_.load(std::memory_order_relaxed));
    assert(head_ < capacity_);
  }

  BiasedMutex mutex_{LockRank::kCompletionQueue};
  std::unique_ptr<roce::Completion[]> ring_;
  uint32_t capacity_ = 0;  // of the ring: a power of two, at least size_
  uint32_t head_ = 0;
  Armed armed_ = Armed::kNo;
  std::atomic<bool> overrun_{false};
  std::atomic<uint32_t> size_{0};
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> takes_{0};
  std::atomic<uint32_t> notice_{0};
};

}  // namespace dapple::soft
