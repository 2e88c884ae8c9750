// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Wakes the one thread that sleeps for software's events alone: a semaphore, which takes no descriptor. To wait is
// a cancellation point, to wake is none.
#pragma once

#include <semaphore.h>

#include <cerrno>
#include <cstdint>

#include "udapl/core/clock.hpp"

namespace dapple::dat {

class WakeUp {
 public:
  WakeUp() noexcept { sem_init(&semaphore_, 0, 0); }
  ~WakeUp() { sem_destroy(&semaphore_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  // The next wait(), or the one under way, returns at once. From any thread.
  void raise() { sem_post(&semaphore_); }
  // Until raise(), or that time of the monotonic clock. 0, ETIMEDOUT or EINTR.
  int wait(int64_t deadline_ns) {
    if (wait_once(deadline_ns) != 0) return errno;
    while (sem_trywait(&semaphore_) == 0) {
    }
    return 0;
  }

 private:
  int wait_once(int64_t deadline_ns) {
    if (deadline_ns == kNever) return sem_wait(&semaphore_);
    const timespec deadline = to_timespec(deadline_ns);
    return sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &deadline);
  }

  sem_t semaphore_;
};

}  // namespace dapple::dat
