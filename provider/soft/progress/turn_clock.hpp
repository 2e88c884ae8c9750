// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <time.h>

#include "roce/clock.hpp"

namespace dapple::soft {

inline roce::Time read_clock(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<roce::Time>(time.tv_sec) * 1'000'000'000 + static_cast<roce::Time>(time.tv_nsec);
}

// The time of one turn of work: each clock is read at its first use, if ever.
class TurnClock final : public roce::Clock {
 public:
  roce::Time exact() override {
    if (exact_ == 0) exact_ = read_clock(CLOCK_MONOTONIC);
    return exact_;
  }
  // The time of the kernel's last tick, which needs no look at the processor's counter.
  roce::Time rough() override {
    if (exact_ != 0) return exact_;
    if (rough_ == 0) rough_ = read_clock(CLOCK_MONOTONIC_COARSE);
    return rough_;
  }
  void restart() { exact_ = rough_ = 0; }

 private:
  roce::Time exact_ = 0;
  roce::Time rough_ = 0;
};

}  // namespace dapple::soft
