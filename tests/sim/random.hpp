// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Random numbers that are the same for the same seed everywhere.
#pragma once

#include <cstdint>
#include <iterator>

namespace dapple::sim {

// Spreads the bits of `value` over all of the result.
constexpr uint64_t mixed(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mixed(seed + 0x9E3779B97F4A7C15)) {}

  uint64_t next() { return mixed(state_ += 0x9E3779B97F4A7C15); }
  // 0 .. count - 1
  uint64_t below(uint64_t count) { return next() % count; }
  // first .. last
  uint64_t between(uint64_t first, uint64_t last) { return first + below(last - first + 1); }
  bool in_thousand(uint64_t cases) { return below(1000) < cases; }
  template <typename Array>
  auto& one_of(Array& array) {
    return array[below(static_cast<uint64_t>(std::size(array)))];
  }

 private:
  uint64_t state_;
};

}  // namespace dapple::sim
