// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The turn to fork. The handlers of pthread_atfork() try each lock once and never wait: a fork may be made in a signal
// handler, where the thread that it interrupted holds the lock, or by a thread whose caller holds a lock that the
// lock's holder needs. The locks that a fork holds are recorded beside the locks, so only one fork at a time may do so;
// a child of another fork has none of them.
#pragma once

#include <pthread.h>

#include <atomic>

namespace dapple::dat {

class ForkTurn {
 public:
  // In the handler before a fork. False beside another fork, which may be one of this thread that a signal interrupted.
  bool take() {
    if (!taken_.exchange(true, std::memory_order_acquire)) {
      owner_.store(pthread_self(), std::memory_order_relaxed);
      return true;
    }
    if (is_owner()) ++nested_;
    return false;
  }
  // In the handlers after it: whether take() was true for this one.
  bool is_mine() const { return taken_.load(std::memory_order_acquire) && is_owner() && nested_ == 0; }
  // The last thing in them.
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
  int nested_ = 0;  // the owner's
};

}  // namespace dapple::dat
