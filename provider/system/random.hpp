// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Random numbers of the device of this process. DAPPLE_SEED, one number, determines those of random_number(). Any
// thread may call these functions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "provider/system/problem.hpp"

namespace dapple::soft {

// Fills up to 256 bytes with the kernel's random numbers, which nobody can guess.
void fill_with_random_bytes(void* to, size_t size);

// A decimal number of 64 bits. False if the text is not such a number.
bool parse_seed(std::string_view text, uint64_t& seed);

// Empty without DAPPLE_SEED. If it is malformed, no device can be opened: `problem` has the reason.
std::optional<uint64_t> seed_of_process();
bool seed_is_possible(Problem& problem);

// SplitMix64: one seed gives one sequence.
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

// Each use has a sequence of its own, so that one of them does not change the numbers of another.
enum class RandomUse : uint8_t { kQueuePairNumbers, kKeys, kSourcePorts, kCount };

// The next number of this process for the use: by DAPPLE_SEED if it is set, or else the kernel's.
uint32_t random_number(RandomUse use);

}  // namespace dapple::soft
