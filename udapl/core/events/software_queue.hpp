// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The events of an EVD that do not come from a completion queue: connections, requests, asynchronous errors and the
// consumer's own. Bounded; internally locked.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <vector>

#include "udapl/core/events/event.hpp"

namespace dapple::udapl {

class SoftwareQueue {
 public:
  explicit SoftwareQueue(uint32_t capacity) : events_(capacity) {}

  // False when full: the event is not stored.
  [[nodiscard]] bool push(const Event& event) {
    std::lock_guard guard(mutex_);
    const uint32_t stored = count();
    if (stored == events_.size()) return false;
    assert(stored < events_.size() && head_ < events_.size());
    events_[(head_ + stored) % events_.size()] = event;
    set_count(stored + 1);
    return true;
  }

  // done: the number of other events that have been delivered. False also if the first event comes after more.
  [[nodiscard]] bool pop(Event& out, uint64_t done = UINT64_MAX) {
    std::lock_guard guard(mutex_);
    const uint32_t stored = count();
    assert(stored <= events_.size());
    if (stored == 0 || events_[head_].after > done) return false;
    out = events_[head_];
    head_ = static_cast<uint32_t>((head_ + 1) % events_.size());
    set_count(stored - 1);
    return true;
  }

  // Takes over the vector's memory. False, with nothing changed, if more events are stored than fit.
  [[nodiscard]] bool resize(std::vector<Event>& room) {
    std::lock_guard guard(mutex_);
    const uint32_t stored = count();
    if (stored > room.size()) return false;
    for (uint32_t i = 0; i < stored; ++i) room[i] = events_[(head_ + i) % events_.size()];
    events_.swap(room);
    head_ = 0;
    return true;
  }

  // Drops the events that match.
  template <class Match>
  void remove_if(Match match) {
    std::lock_guard guard(mutex_);
    const uint32_t stored = count();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < stored; ++i) {
      const Event event = events_[(head_ + i) % events_.size()];
      if (!match(event)) events_[(head_ + kept++) % events_.size()] = event;
    }
    set_count(kept);
  }

  // Notes that there is work to do before the next event is taken. The note itself is not an event.
  void set_urgent(bool urgent) {
    std::lock_guard guard(mutex_);
    count_.store(count() | (urgent ? kUrgent : 0), std::memory_order_seq_cst);
  }

  // Readable without the lock: dequeueing from an EVD that only gets completions takes no lock.
  uint32_t count() const { return count_.load(std::memory_order_seq_cst) & ~kUrgent; }
  bool urgent() const { return count_.load(std::memory_order_seq_cst) & kUrgent; }
  bool any() const { return count_or_urgent() != 0; }
  // The number of events; more than any number of events when there is such work.
  uint32_t count_or_urgent() const { return count_.load(std::memory_order_seq_cst); }
  uint32_t capacity() const {
    std::lock_guard guard(mutex_);
    return static_cast<uint32_t>(events_.size());
  }

 private:
  static constexpr uint32_t kUrgent = 1U << 31;

  void set_count(uint32_t stored) {
    count_.store(stored | (count_.load(std::memory_order_relaxed) & kUrgent), std::memory_order_seq_cst);
  }

  mutable std::mutex mutex_;
  std::vector<Event> events_;
  uint32_t head_ = 0;
  std::atomic<uint32_t> count_ = 0;
};

}  // namespace dapple::udapl
