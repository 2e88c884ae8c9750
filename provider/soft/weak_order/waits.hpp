// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// Waits of order=weak in this process that have begun and not ended. Any thread.
class Waits {
 public:
  constexpr Waits() = default;

  void begin() { count_.fetch_add(1); }
  void end() { count_.fetch_sub(1); }
  bool any() const { return count_.load() != 0; }
  // Waits until there are none, 10 ms at most. The background thread ends them.
  void await() const;

 private:
  std::atomic<uint32_t> count_{0};
};

// Queue pairs with requests or answers that leave late.
inline constinit Waits late_packets;
// Queue pairs with bytes that are placed late. Awaited before memory is deregistered.
inline constinit Waits kept_bytes;

// Before a queue pair or the process ends.
inline void await_all_waits() {
  late_packets.await();
  kept_bytes.await();
}

}  // namespace dapple::soft
