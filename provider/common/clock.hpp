// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <time.h>

#include <cstdint>

namespace dapple {

// A clock of the system, in nanoseconds. Any thread, and any signal handler.
inline uint64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t now_ms(clockid_t clock = CLOCK_MONOTONIC) {
  return now_ns(clock) / 1'000'000;
}

}  // namespace dapple
