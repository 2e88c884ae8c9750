// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Clocks of the simulated threads. Each thread counts its own epochs; a clock has the last epoch of each thread that
// its owner knows.
#pragma once

#include <algorithm>
#include <cstdint>

namespace dapple::sim {

inline constexpr uint32_t kMaxThreads = 16;

// A moment of one thread. 0: none.
struct Epoch {
  uint32_t thread : 4 = 0;
  uint32_t count : 28 = 0;
  explicit operator bool() const { return count != 0; }
  bool operator==(const Epoch&) const = default;
};
static_assert(sizeof(Epoch) == 4);

struct Clock {
  uint32_t of[kMaxThreads] = {};

  bool covers(Epoch epoch) const { return of[epoch.thread] >= epoch.count; }
  void join(const Clock& other) {
    for (uint32_t i = 0; i < kMaxThreads; i++) of[i] = std::max(of[i], other.of[i]);
  }
};

// The events that a thread knows of, or that a store tells whoever acquires it.
struct Knowledge {
  Clock before;  // they happen before (C++20 6.9.2.2), so plain accesses behind them are safe
  Clock seen;    // the same, and those that only a sequentially consistent fence shows: no older value may be read
  // The places of the last sequentially consistent operation, and of the last fence, in the total order.
  uint32_t total = 0, fence = 0;

  void join(const Knowledge& other) {
    before.join(other.before);
    seen.join(other.seen);
    total = std::max(total, other.total);
    fence = std::max(fence, other.fence);
  }
};

}  // namespace dapple::sim
