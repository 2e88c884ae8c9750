// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/nearest.hpp"

#include <algorithm>

namespace dapple::face {

size_t distance(std::string_view one, std::string_view other) {
  constexpr size_t kLongest = 63;
  if (one.size() > kLongest || other.size() > kLongest) return std::max(one.size(), other.size());
  // The distances of one[0, i) to all beginnings of `other`.
  size_t row[kLongest + 1] = {};
  for (size_t j = 0; j <= other.size(); j++) row[j] = j;
  for (size_t i = 1; i <= one.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= other.size(); j++) {
      const size_t above = row[j];
      const size_t replaced = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above + 1, row[j - 1] + 1});
      diagonal = above;
    }
  }
  return row[other.size()];
}

}  // namespace dapple::face
