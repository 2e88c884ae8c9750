// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_BRIEF_MUTEX_HPP
#define DAPPLE_PROVIDER_SOFT_BRIEF_MUTEX_HPP

#include <sched.h>
#include <time.h>

#include <atomic>

#include "provider/soft/undisturbed.hpp"

namespace dapple::soft {

// A lock for the data path, where threads rarely meet. It costs one atomic exchange; a mutex of the system costs two,
// and two calls. A thread that waits gives its CPU to the owner.
class BriefMutex {
 public:
  void lock() {
    if (!try_lock()) wait();
  }
  bool try_lock() { return !taken_.exchange(true, std::memory_order_acquire); }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooks = 64;
  static constexpr int kYields = 256;
  static constexpr long kNap = 20'000;  // ns

  [[gnu::noinline, gnu::cold]] void wait() {
    const Undisturbed undisturbed;
    for (int tries = 0;; ++tries) {
      if (!taken_.load(std::memory_order_relaxed) && try_lock()) return;
      if (tries < kLooks) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else if (tries < kYields) {
        sched_yield();
      } else {
        // A yield does not help an owner of a lower real-time priority.
        const timespec nap = {0, kNap};
        nanosleep(&nap, nullptr);
      }
    }
  }

  std::atomic<bool> taken_{false};
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_BRIEF_MUTEX_HPP
