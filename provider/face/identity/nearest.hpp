// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <string_view>

namespace dapple::face {

// The number of characters to insert, take away or replace until one text is the other. Texts longer than 63 characters
// differ completely.
size_t distance(std::string_view one, std::string_view other);

// Collects candidates, and has the nearest of them to a word.
class Nearest {
 public:
  explicit Nearest(std::string_view word) : word_(word), best_distance_(word.size() + 1) {}
  void offer(std::string_view candidate) {
    const size_t away = distance(word_, candidate);
    if (away >= best_distance_) return;
    best_distance_ = away;
    best_ = candidate;
  }
  // Empty if no candidate resembles the word.
  std::string_view best() const { return best_; }

 private:
  std::string_view word_;
  size_t best_distance_;
  std::string_view best_;
};

}  // namespace dapple::face
