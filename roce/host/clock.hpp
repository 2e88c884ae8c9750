// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The host's clock, for the engine. Reading the exact time takes as long as the rest of a short message on some
// machines, and a timer of a second does not need it.
#pragma once

#include <cstdint>

namespace dapple::roce {

// Nanoseconds of any clock that never goes back.
using Time = uint64_t;
inline constexpr Time kNever = UINT64_MAX;

// rough() is never ahead of exact(), and at most this much behind it: a tick of the kernel's timer.
inline constexpr Time kRoughError = 10'000'000;

class Clock {
 public:
  virtual Time exact() = 0;
  virtual Time rough() = 0;

 protected:
  ~Clock() = default;
};

// The time of one call: a clock that is read if need be, or a time that the caller knows.
class Now {
 public:
  Now(Clock& clock) : clock_(&clock) {}  // NOLINT(google-explicit-constructor)
  Now(Time time) : time_(time) {}        // NOLINT(google-explicit-constructor)

  Time exact() const { return clock_ != nullptr ? clock_->exact() : time_; }
  Time rough() const { return clock_ != nullptr ? clock_->rough() : time_; }

 private:
  Clock* clock_ = nullptr;
  Time time_ = 0;
};

}  // namespace dapple::roce
