// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that the supervisor shares with all workers. It stays consistent if a worker is killed.
#pragma once

#include <atomic>
#include <cstdint>

#include "tests/soak/end.hpp"

namespace dapple::soak {

inline constexpr uint32_t kMaxPairs = 64;

struct WorkerNews {
  // Of all processes that were this worker.
  std::atomic<uint64_t> checked{0};  // bytes
  std::atomic<uint64_t> transfers{0};
  std::atomic<uint64_t> ends[kEndKinds] = {};
  // Of the present process.
  std::atomic<uint64_t> steps{0};  // grows as long as there is progress
  std::atomic<uint64_t> rests{0};  // times without a connection, at which it measured itself
  std::atomic<long> kib{0};
  std::atomic<long> descriptors{0};
  // The clock's time at which it became ready, or at which its last connection ended that was not whole.
  std::atomic<uint64_t> upset_ms{0};
  char problem[400] = "";
};

struct PairNews {
  WorkerNews workers[2];  // the server, the client
  std::atomic<uint64_t> killed_ms{0};
};

struct Shared {
  std::atomic<bool> stop{false};
  // The test's clock. It stands still while the supervisor does not run, as in a frozen container.
  std::atomic<uint64_t> clock_ms{60000};
  std::atomic<uint64_t> dappled_killed_ms{0};
  PairNews pairs[kMaxPairs];
};

}  // namespace dapple::soak
