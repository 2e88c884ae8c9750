// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dapple::soft {

// A row in memory that a process shares with dappled, which reads it at any time without stopping anybody. One writer,
// any number of readers. `Row` tells by is_used() whether it is in use.
template <typename Row>
class SharedRow {
  static_assert(std::is_trivially_copyable_v<Row> && sizeof(Row) % sizeof(uint32_t) == 0);

 public:
  // Whatever the last writer has left: it may have been killed while it wrote.
  void write(const Row& row) {
    uint32_t words[kWords];
    memcpy(words, &row, sizeof words);
    const uint32_t writing = version_.load(std::memory_order_relaxed) | 1;
    version_.store(writing, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (size_t i = 0; i < kWords; i++) words_[i].store(words[i], std::memory_order_relaxed);
    version_.store(writing + 1, std::memory_order_release);
  }
  // False if the row is free, or is written all the time, or its writer was killed meanwhile.
  bool read(Row& row) const {
    for (int tries = 0; tries < 100; tries++) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      if (before % 2 != 0) continue;
      uint32_t words[kWords];
      for (size_t i = 0; i < kWords; i++) words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(std::memory_order_relaxed) != before) continue;
      memcpy(static_cast<void*>(&row), words, sizeof words);
      return row.is_used();
    }
    return false;
  }

 protected:
  static constexpr size_t kWords = sizeof(Row) / sizeof(uint32_t);

  std::atomic<uint32_t> version_{0};  // odd while it is written
  std::atomic<uint32_t> words_[kWords] = {};
};

}  // namespace dapple::soft
