// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

#include <atomic>

#include "provider/common/lock_order.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"

namespace dapple::soft {

// A lock for the data path, where threads rarely meet. A thread that waits gives its CPU to the owner.
//
// An atomic exchange waits until earlier stores have left the CPU, and a message takes half a dozen locks. So the first
// thread that takes a lock many times in a row becomes its favourite, and from then on takes it by plain stores.
// Another thread that wants the lock ends this by a heavy barrier, which costs as much as a hundred exchanges. Each
// such end doubles the number of times in a row after which the favourite gets its privilege back. A lock never has
// another favourite: so only one thread ever writes favourite_holds_. A thread that stands in for others now and then
// must not take their place: it calls renounce_privileges().
class BiasedMutex {
 public:
  constexpr explicit BiasedMutex(LockRank rank) : order_(rank) {}

  // From now on the calling thread becomes no lock's favourite.
  static void renounce_privileges();

  void lock() {
    order_.may_take();
    if (!lock_as_favourite()) lock_as_others();
    order_.took();
  }
  bool try_lock() {
    order_.may_take();
    if (!lock_as_favourite() && !try_as_others()) return false;
    order_.took();
    return true;
  }
  void unlock() {
    order_.lets_go();
    if (is_favourite() && favourite_holds_.load(std::memory_order_relaxed)) {
      favourite_holds_.store(false, std::memory_order_release);
    } else {
      unlock_as_others();
    }
  }
  bool is_held_here() const { return order_.is_held_here(); }

 private:
  friend class BiasedLock;
  using Thread = uintptr_t;
  static constexpr uint32_t kFirstTimesInARow = 128;
  static constexpr uint32_t kMaxTimesInARow = 1 << 16;

  static Thread this_thread() {
    [[gnu::tls_model("initial-exec")]] static thread_local constinit char mark = 0;
    return reinterpret_cast<Thread>(&mark);
  }
  bool is_favourite() const { return favourite_.load(std::memory_order_relaxed) == this_thread(); }

  // This function is inlined everywhere, so the rare paths are not.
  bool lock_as_favourite() {
    if (!is_favourite()) return false;
    favourite_holds_.store(true, std::memory_order_relaxed);
    light_barrier();
    if (privileged_.load(std::memory_order_relaxed)) [[likely]]
      return true;
    // Released, because another thread may read this instead of the store of the last unlock().
    favourite_holds_.store(false, std::memory_order_release);
    return false;
  }
  void lock_as_others();
  bool try_as_others();
  void unlock_as_others();
  [[gnu::noinline]] void await_others();
  [[gnu::noinline]] void await_favourite();
  [[gnu::noinline]] void end_privilege();
  [[gnu::noinline]] void give_privilege(Thread self);

  std::atomic<Thread> favourite_{0};  // 0: none yet; it never changes again
  std::atomic<bool> privileged_{false};
  std::atomic<bool> favourite_holds_{false};  // by its privilege
  std::atomic<bool> taken_{false};            // by any thread without the privilege
  // Guarded by taken_.
  Thread last_owner_ = 0;
  uint32_t times_in_a_row_ = 0;
  uint32_t times_needed_ = kFirstTimesInARow;
  [[no_unique_address]] LockOrder order_;
};
#ifdef NDEBUG
static_assert(sizeof(uintptr_t) != 8 || sizeof(BiasedMutex) == 32);
#endif

// As std::lock_guard. It remembers how it took the lock.
class [[nodiscard]] BiasedLock {
 public:
  explicit BiasedLock(BiasedMutex& mutex) : mutex_(mutex), is_favourite_(take(mutex)) {
    if (!is_favourite_) mutex_.lock_as_others();
    mutex_.order_.took();
  }
  ~BiasedLock() {
    mutex_.order_.lets_go();
    if (is_favourite_) {
      mutex_.favourite_holds_.store(false, std::memory_order_release);
    } else {
      mutex_.unlock_as_others();
    }
  }
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

 private:
  static bool take(BiasedMutex& mutex) {
    mutex.order_.may_take();
    return mutex.lock_as_favourite();
  }

  BiasedMutex& mutex_;
  const bool is_favourite_;
};

}  // namespace dapple::soft
