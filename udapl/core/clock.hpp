// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <time.h>

#include <cstdint>
#include <limits>

namespace dapple::udapl {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// The monotonic clock, in nanoseconds.
inline int64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

inline timespec to_timespec(int64_t ns) {
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

}  // namespace dapple::udapl
