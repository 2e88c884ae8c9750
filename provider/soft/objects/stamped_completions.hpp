// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// In front of a completion queue that a program made with time stamps. The queue pairs of other queues complete into
// the queue itself, so they pay nothing.
#pragma once

#include <time.h>

#include "provider/common/clock.hpp"
#include "provider/soft/objects/completion_queue.hpp"

namespace dapple::soft {

// The device's clock, which the program reads by ibv_query_rt_values_ex(). It counts nanoseconds.
inline constexpr clockid_t kDeviceClock = CLOCK_MONOTONIC_RAW;
inline constexpr uint64_t kDeviceClockKhz = 1'000'000;

class StampedCompletions final : public roce::CompletionSink {
 public:
  // Which clocks the program reads.
  struct Clocks {
    bool raw = false;
    bool wall = false;
  };
  StampedCompletions(CompletionQueue& queue, Clocks clocks) : queue_(queue), clocks_(clocks) {}

  void complete(const roce::Completion& completion) override {
    queue_.complete_stamped(
        completion, {.raw = clocks_.raw ? now_ns(kDeviceClock) : 0, .wall = clocks_.wall ? now_ns(CLOCK_REALTIME) : 0});
  }

 private:
  CompletionQueue& queue_;
  const Clocks clocks_;
};

}  // namespace dapple::soft
