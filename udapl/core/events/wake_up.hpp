// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Wakes the one thread that sleeps only for events made by software. It is a semaphore, which needs no descriptor.
// Waiting is a cancellation point; waking is not.
#pragma once

#include <semaphore.h>

#include <cerrno>
#include <cstdint>

#include "udapl/core/clock.hpp"

namespace dapple::udapl {

class WakeUp {
 public:
  WakeUp() noexcept { sem_init(&semaphore_, 0, 0); }
  ~WakeUp() { sem_destroy(&semaphore_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  // Makes the next wait(), or the current one, return at once. Any thread may call it.
  void raise() { sem_post(&semaphore_); }
  // Sleeps until raise() or that time of the monotonic clock. Returns 0, ETIMEDOUT or EINTR.
  int wait(int64_t deadline_ns) {
    if (wait_once(deadline_ns) != 0) return errno;
    while (sem_trywait(&semaphore_) == 0) {
    }
    return 0;
  }

 private:
  int wait_once(int64_t deadline_ns) {
    // The kernel restarts sem_wait() after a handler with SA_RESTART, but not a wait with a deadline, however late.
    const timespec deadline = to_timespec(deadline_ns);
    return sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &deadline);
  }

  sem_t semaphore_;
};

}  // namespace dapple::udapl
