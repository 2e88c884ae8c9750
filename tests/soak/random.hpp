// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

namespace dapple::soak {

// The finalizer of splitmix64: each input has its own, unrelated output.
inline uint64_t mix(uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

// One seed gives one sequence.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return mix(state_++); }
  // From 0 to limit - 1.
  uint32_t below(uint64_t limit) { return static_cast<uint32_t>(next() % limit); }
  bool one_in(uint32_t number) { return below(number) == 0; }
  // From 1 to 2^bits, small values as often as large ones.
  uint32_t size(uint32_t bits) { return 1 + below(uint64_t{1} << below(bits + 1)); }

 private:
  uint64_t state_;
};

}  // namespace dapple::soak
