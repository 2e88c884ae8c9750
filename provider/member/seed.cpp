// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/seed.hpp"

#include <errno.h>

#include <charconv>

#include "provider/common/settings.hpp"

namespace dapple::soft {

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

}  // namespace dapple::soft
