// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The connections that librdmacm has reported as ended, with the thread that got this event.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "provider/common/mutex.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf.
class Disconnections {
 public:
  // The calling thread has got RDMA_CM_EVENT_DISCONNECTED for this queue pair, which was connected to `peer`.
  void add(uint32_t qpn, uint32_t peer, const Stack& got);
  // The queue pair has another state, or is destroyed.
  void forget(uint32_t qpn);
  bool any() const { return any_.load(std::memory_order_relaxed); }
  // The calling thread posts a request. Returns where it has got the event at one end of the connection, if it has:
  // once for each connection.
  std::optional<Stack> take(uint32_t qpn, uint32_t peer);

  Mutex& mutex() { return mutex_; }

  // If there are more, the oldest are forgotten.
  static constexpr size_t kMax = 1024;

 private:
  struct Disconnection {
    uint32_t qpn, peer;
    pid_t thread;
    Stack got;
  };

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  Mutex mutex_{LockRank::kDisconnections};
  std::deque<Disconnection> ended_;
  std::atomic<bool> any_{false};
};

}  // namespace dapple::soft::check
