// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <mutex>

namespace dapple::udapl {

// A mutex of 4 bytes that costs a few instructions while no thread waits for it: the data path takes one for each
// event.
class SmallMutex {
 public:
  SmallMutex() = default;
  SmallMutex(const SmallMutex&) = delete;
  SmallMutex& operator=(const SmallMutex&) = delete;

  void lock() {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }
  bool try_lock() {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() {
    const uint32_t before = state_.fetch_sub(1, std::memory_order_release);
    assert(before != kFree);
    if (before != kHeld) [[unlikely]]
      unlock_awaited();
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kAwaited = 2;  // held, and a thread may sleep until it is free

  void lock_contended();
  void unlock_awaited();

  std::atomic<uint32_t> state_ = kFree;
};

// A lock that only an IA opened thread-safe takes. On any other it costs a predictable branch.
class OptionalMutex {
 public:
  explicit OptionalMutex(bool enabled) : enabled_(enabled) {}
  void lock() {
    if (enabled_) mutex_.lock();
  }
  void unlock() {
    if (enabled_) mutex_.unlock();
  }

 private:
  const bool enabled_;
  SmallMutex mutex_;
};

// Guards the life cycle and the connection state of all objects: creation, destruction, reference counts, connecting
// and disconnecting. Posting, polling and waiting never take it.
//
// Order of locks: the control mutex, then an IA's for binding windows, then an Ep's data path mutex, then an Evd's,
// then an Evd's software queue. evd.hpp and notifier.hpp have the places of the locks for CNOs.
std::mutex& control_mutex();

}  // namespace dapple::udapl
