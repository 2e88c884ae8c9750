// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/random.hpp"

#include <errno.h>
#include <sys/random.h>

#include <cassert>
#include <charconv>

#include "provider/common/clock.hpp"
#include "provider/common/settings.hpp"

namespace dapple::soft {
namespace {

// Mixes the use into the seed's highest byte, so that the sequences have little in common.
uint64_t seed_of(RandomUse use, uint64_t seed) {
  return RandomSequence(seed ^ static_cast<uint64_t>(use) << 56).next();
}

uint32_t kernels_number() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) == sizeof number) return number;
  static std::atomic<uint32_t> calls{0};
  return static_cast<uint32_t>(now_ns()) + calls.fetch_add(257, std::memory_order_relaxed);
}

}  // namespace

void fill_with_random_bytes(void* to, size_t size) {
  assert(size <= 256);
  while (getrandom(to, size, 0) < 0 && errno == EINTR) {
  }
}

bool parse_seed(std::string_view text, uint64_t& seed) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seed);
  return error == std::errc() && stop == end;
}

std::optional<uint64_t> seed_of_process() {
  uint64_t seed = 0;
  const char* text = provider::settings().seed;
  return text != nullptr && parse_seed(text, seed) ? std::optional(seed) : std::nullopt;
}

bool seed_is_possible(Problem& problem) {
  if (provider::settings().seed == nullptr || seed_of_process().has_value()) return true;
  problem.set(EINVAL, "DAPPLE_SEED is not a number from 0 to 18446744073709551615: %.60s", provider::settings().seed);
  return false;
}

uint32_t random_number(RandomUse use) {
  static const std::optional<uint64_t> seed = seed_of_process();
  if (!seed.has_value()) return kernels_number();
  static RandomSequence sequences[] = {
      RandomSequence(seed_of(RandomUse::kQueuePairNumbers, *seed)),
      RandomSequence(seed_of(RandomUse::kKeys, *seed)),
      RandomSequence(seed_of(RandomUse::kSourcePorts, *seed)),
  };
  static_assert(sizeof sequences / sizeof sequences[0] == static_cast<size_t>(RandomUse::kCount));
  return static_cast<uint32_t>(sequences[static_cast<size_t>(use)].next() >> 32);
}

}  // namespace dapple::soft
