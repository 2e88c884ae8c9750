// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dapple::udapl {
namespace {

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof word == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

// A thread that had to wait marks the mutex as awaited, because there may be other waiters.
void SmallMutex::lock_contended() {
  constexpr int kSpins = 100;
  for (int i = 0; i < kSpins; ++i) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
  }
  while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree) futex(state_, FUTEX_WAIT, kAwaited);
}

// unlock() has made the mutex look held, but no thread holds it.
void SmallMutex::unlock_awaited() {
  state_.store(kFree, std::memory_order_release);
  futex(state_, FUTEX_WAKE, 1);
}

}  // namespace dapple::udapl
