// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>

// Cache lines that threads take from each other. A CPU's stores become visible in order, so a store behind these waits
// for them, while later loads do not. A barrier that is missing there shows soon.
class StoreNoise {
 public:
  void make() {
    for (Line& line : lines_) line.word.store(1, std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Line {
    std::atomic<int> word{0};
  };
  Line lines_[16];
};
