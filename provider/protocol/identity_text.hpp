// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The first word of DAPPLE_AS: "PROFILE" or "PROFILE:COUNT".
#pragma once

#include <string_view>

namespace dapple::soft {

struct IdentityName {
  std::string_view profile;
  std::string_view count;
  bool has_count = false;
};

inline IdentityName identity_name(std::string_view spec) {
  const std::string_view word = spec.substr(0, spec.find(','));
  const size_t colon = word.rfind(':');
  if (colon == word.npos) return {.profile = word, .count = {}, .has_count = false};
  const std::string_view count = word.substr(colon + 1);
  // Paths may have colons.
  const bool is_path = word.find('/') != word.npos;
  if (is_path && count.find_first_of("./") != word.npos) return {.profile = word, .count = {}, .has_count = false};
  return {.profile = word.substr(0, colon), .count = count, .has_count = true};
}

}  // namespace dapple::soft
