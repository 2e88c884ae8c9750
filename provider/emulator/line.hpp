// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A copy of a line of memory that other threads may write at the same time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "provider/emulator/shadow_pages.hpp"

namespace dapple::provider {

struct Line {
  static constexpr size_t kWords = ShadowPages::kLine / sizeof(uint64_t);
  uint64_t words[kWords];

  bool operator==(const Line&) const = default;

  // Copies a line; memory is its beginning.
  static Line of(const void* memory) {
    Line line;
    for (size_t i = 0; i < kWords; ++i) {
      line.words[i] = __atomic_load_n(static_cast<const uint64_t*>(memory) + i, __ATOMIC_RELAXED);
    }
    return line;
  }
  void put(void* memory) const {
    for (size_t i = 0; i < kWords; ++i) {
      __atomic_store_n(static_cast<uint64_t*>(memory) + i, words[i], __ATOMIC_RELAXED);
    }
  }
  // Writes only the words that differ from before: the program may write the others at the same time.
  void put_changes(const Line& before, void* memory) const {
    for (size_t i = 0; i < kWords; ++i) {
      if (words[i] == before.words[i]) continue;
      __atomic_store_n(static_cast<uint64_t*>(memory) + i, words[i], __ATOMIC_RELAXED);
    }
  }
};

}  // namespace dapple::provider
