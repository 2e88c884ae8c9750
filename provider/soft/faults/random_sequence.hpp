// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// SplitMix64: one seed gives one sequence. Any thread.
class RandomSequence {
 public:
  explicit RandomSequence(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t value = state_.fetch_add(kStep, std::memory_order_relaxed) + kStep;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
  }
  // `probability`: from 0 to 1.
  bool happens(double probability) { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
  // A number below `limit`, which is not 0.
  uint64_t below(uint64_t limit) { return next() % limit; }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  std::atomic<uint64_t> state_;
};

}  // namespace dapple::soft
