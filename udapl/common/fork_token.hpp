// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The token of the one fork that takes the locks. The handlers of pthread_atfork() try each lock once and never wait: a
// fork may run in a signal handler whose interrupted thread holds the lock, or on a thread whose caller holds a lock
// that the lock's holder needs. The handlers record the locks that they took beside the locks, so only one fork at a
// time may do this; a child of another fork has none of the locks.
#pragma once

#include <pthread.h>

#include <atomic>

namespace dapple::udapl::common {

class ForkToken {
 public:
  // Called in the handler before a fork. False during another fork, which may even be one of this thread that a signal
  // interrupted.
  bool take() {
    if (!taken_.exchange(true, std::memory_order_acquire)) {
      owner_.store(pthread_self(), std::memory_order_relaxed);
      return true;
    }
    if (is_owner()) ++nested_;
    return false;
  }
  // Called in the handlers after the fork. True if take() returned true for this fork.
  bool is_mine() const { return taken_.load(std::memory_order_acquire) && is_owner() && nested_ == 0; }
  // The last call in these handlers.
  void give_back() {
    if (!taken_.load(std::memory_order_acquire) || !is_owner()) return;
    if (nested_ > 0) {
      --nested_;
      return;
    }
    owner_.store(pthread_t{}, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
  }

 private:
  bool is_owner() const { return pthread_equal(owner_.load(std::memory_order_relaxed), pthread_self()) != 0; }

  std::atomic<bool> taken_ = false;
  std::atomic<pthread_t> owner_{};
  int nested_ = 0;  // only the owner's thread uses it
};

}  // namespace dapple::udapl::common
