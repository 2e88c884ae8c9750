// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The completions of a completion queue, without libibverbs' object around it (cq_verbs.cpp).
//
// complete() is called under the locks of queue pairs, so it makes no system call: it leaves a note that an event is
// due, and its caller fetches the note with take_notice() after it has released the locks. The lock inside is a leaf.
#pragma once

#include <stdint.h>
#include <time.h>

#include <atomic>
#include <cassert>
#include <memory>

#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/objects/queues/queue_allocator.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxCompletions = 1 << 20;

// The parts of a completion that most programs do not ask for. The times are those at which it came: of the device's
// clock, and of CLOCK_REALTIME. A clock that the queue's user did not ask for is 0.
struct CompletionStamp {
  uint64_t raw = 0;
  uint64_t wall = 0;
  roce::MatchedTag tag;  // of a message that has met its tag
};

// The device's clock, which the program reads by ibv_query_rt_values_ex(). It counts nanoseconds.
inline constexpr clockid_t kDeviceClock = CLOCK_MONOTONIC_RAW;
inline constexpr uint64_t kDeviceClockKhz = 1'000'000;

// The clocks that the program reads. The others' stamps are 0.
struct StampClocks {
  bool raw = false;
  bool wall = false;

  CompletionStamp now() const;
};

class CompletionQueue final : public roce::CompletionSink {
 public:
  // 0, EINVAL for a size of 0 or beyond kMaxCompletions, or ENOMEM. The queue may be larger than requested. `allocator`
  // lives longer than the queue, or is null.
  int initialize(uint32_t size, const QueueAllocator* allocator = nullptr);
  // Before the first completion: from now on the queue keeps the stamps of complete_stamped(). 0 or ENOMEM.
  int keep_stamps();
  bool keeps_stamps() const { return stamps_ != nullptr; }
  uint32_t size() const { return size_.load(std::memory_order_relaxed); }

  // From now on a completion without room is dropped as if nobody wanted it.
  void ignore_overruns() { ignores_overruns_ = true; }
  bool ignores_overruns() const { return ignores_overruns_; }

  // Drops the completion if there is no room, and notes an overrun once. False then, unless the queue ignores overruns.
  bool complete(const roce::Completion& completion) override;
  // The same for a queue that keeps stamps.
  bool complete_stamped(const roce::Completion& completion, StampClocks clocks, const roce::MatchedTag& tag = {});

  // Takes up to `count` of the oldest completions: calls use(completion, number) for each, under the lock.
  template <typename Use>
  uint32_t take(uint32_t count, Use use) {
    if (empty()) return 0;
    const BiasedLock lock(mutex_);
    const uint32_t there = count_.load(std::memory_order_relaxed);
    if (count > there) count = there;
    for (uint32_t i = 0; i < count; ++i) use(ring_[place(i)], i);
    taken_.store(taken() + count, std::memory_order_relaxed);
    count_.store(there - count, std::memory_order_release);
    assert_consistent();
    return count;
  }
  uint32_t take(roce::Completion* completions, uint32_t count) {
    return take(count, [&](const roce::Completion& completion, uint32_t i) { completions[i] = completion; });
  }
  // Takes the oldest completion of a queue that keeps stamps. False if there is none.
  bool take_stamped(roce::Completion& completion, CompletionStamp& stamp);
  // True if a completion has ever been dropped.
  bool has_overrun() const { return overrun_.load(std::memory_order_relaxed); }
  // The number of completions that have been taken, modulo 2^32.
  uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // Calls look(completion) for each completion, the oldest first, under the lock.
  template <typename Look>
  void look(Look look) {
    const BiasedLock lock(mutex_);
    const uint32_t there = count_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < there; ++i) look(ring_[place(i)]);
  }

  // Drops the completions of a queue pair. Those that an event waits for do not count any more.
  void forget(uint32_t qpn);

  // Completions stay. EINVAL: they do not fit; or as initialize().
  int resize(uint32_t size);

  // The next completion (or the next solicited or failed one) makes an event due, once. A later request for solicited
  // completions does not narrow a request for all.
  void request_notification(bool solicited_only);
  enum class Armed : uint8_t { kNo, kSolicited, kAny };
  // What makes an event due now.
  Armed armed() {
    const BiasedLock lock(mutex_);
    return armed_;
  }

  // From now on an event is due only when `count` completions have come that make one due, or when end_hold() finds
  // fewer. 0 or 1: an event is due with the first. True: the event that was held is due now.
  bool moderate(uint32_t count);
  // The time of a held event is over. True: it is due now.
  bool end_hold();

  // Bits that complete() has left since the last call. kEventHeld: the first of the completions that moderate() holds
  // has come.
  enum Notice : uint32_t { kEventDue = 1, kOverrun = 2, kEventHeld = 4 };
  uint32_t take_notice() { return notice_.exchange(0, std::memory_order_acq_rel); }
  bool has_notice() const { return notice_.load(std::memory_order_relaxed) != 0; }

 private:
  // In ring_, of the `i`-th oldest completion.
  uint32_t place(uint32_t i) const { return (taken() + i) & (capacity_ - 1); }
  // With the lock. append() returns what complete() does.
  bool append(const roce::Completion& completion);
  bool makes_event_due(const roce::Completion& completion) const;
  struct Held {
    uint32_t all = 0;         // of held_
    uint32_t before_any = 0;  // of held_before_any_
  };
  Held held_of(uint32_t qpn) const;  // those of a queue pair: the newest ones that are there
  uint32_t note_event();  // an armed queue has got a completion that it reports; returns what complete() notes
  bool release_event();   // true

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const {
    assert_held(mutex_);
    assert((capacity_ & (capacity_ - 1)) == 0 && size_.load(std::memory_order_relaxed) <= capacity_);
    assert(count_.load(std::memory_order_relaxed) <= size_.load(std::memory_order_relaxed));
    assert(held_ == 0 || (held_ < moderation_ && armed_ != Armed::kNo));
    assert(held_before_any_ <= held_ && (held_before_any_ == 0 || armed_ == Armed::kAny));
  }

  BiasedMutex mutex_{LockRank::kCompletionQueue};
  QueueArray<roce::Completion> ring_;
  uint32_t capacity_ = 0;  // of the ring: a power of two, at least size_
  Armed armed_ = Armed::kNo;
  uint32_t moderation_ = 0;  // completions that make an event due; 0 as 1
  uint32_t held_ = 0;        // of these, those that have come
  // Of held_, those that came while the request was for solicited ones; it is for all now.
  uint32_t held_before_any_ = 0;
  std::atomic<bool> overrun_{false};
  bool ignores_overruns_ = false;
  std::atomic<uint32_t> size_{0};
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> taken_{0};
  std::atomic<uint32_t> notice_{0};
  const QueueAllocator* allocator_ = nullptr;
  QueueArray<CompletionStamp> stamps_;  // one for each place in ring_; null if the queue keeps none
};

}  // namespace dapple::soft
