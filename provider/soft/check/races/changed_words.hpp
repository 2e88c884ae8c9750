// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The words that peers have changed by atomics, or by Writes of a word: an atomic that finds a value comes after the
// request that has left it there.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>

#include "provider/soft/check/races/known_requests.hpp"

namespace dapple::soft::check {

// Confined: the caller has a lock.
class ChangedWords {
 public:
  // Null: no request has changed the word, unless has_forgotten().
  const KnownRequests* find(uintptr_t word) const {
    const auto found = words_.find(word);
    return found == words_.end() ? nullptr : &found->second;
  }
  // The request that changes these bytes at the time `now`, and what its program knew. If they are in one word, a new
  // word is noted, to which all of `before` may have come.
  void change(uintptr_t begin, uintptr_t end, const KnownRequests& known, QueuePairName name, uint64_t stamp,
              const KnownRequests& before, uint64_t now) {
    const uintptr_t first = begin / kWord * kWord;
    if (first + kWord >= end && !words_.contains(first)) {
      if (words_.size() == kMax) {
        words_.erase(words_.begin());
        has_forgotten_ = true;
      }
      words_.try_emplace(first, before);
    }
    assert(words_.size() <= kMax);
    for (auto word = words_.lower_bound(first); word != words_.end() && word->first < end; ++word) {
      word->second.add(known);
      word->second.add(name, stamp, now);
    }
  }
  bool has_forgotten() const { return has_forgotten_; }

  static constexpr size_t kMax = 512;

 private:
  static constexpr uintptr_t kWord = 8;

  std::map<uintptr_t, KnownRequests> words_;
  bool has_forgotten_ = false;
};

}  // namespace dapple::soft::check
