// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// Counts the forks between the first process and this one. An object of another generation belongs to the parent.
class ForkGeneration {
 public:
  static const std::atomic<uint32_t>& counter() { return forks_; }
  static uint32_t now() { return forks_.load(std::memory_order_relaxed); }
  // In a child of fork().
  static void begin_next() { forks_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static inline constinit std::atomic<uint32_t> forks_{0};
};

}  // namespace dapple::soft
