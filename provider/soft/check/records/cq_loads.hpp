// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The number of requests that may wait for their completion in each completion queue: the sum of the depths of the
// queues that use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "provider/common/mutex.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf. Any address names a completion queue, or a queue of requests.
class CqLoads {
 public:
  // A shared receive queue is added for each queue pair that uses it, and counts once.
  void add(const void* cq, const void* queue, size_t depth);
  void remove(const void* cq, const void* queue);
  void forget(const void* cq);
  // The load if it is more than `size`: once for each completion queue.
  std::optional<uint64_t> excess(const void* cq, size_t size);

  Mutex& mutex() { return mutex_; }

 private:
  struct Queue {
    size_t depth;
    uint32_t users;
  };
  struct Load {
    std::map<const void*, Queue> queues;
    uint64_t requests = 0;
    bool told = false;

    // Asserts the conditions that hold between two calls.
    void assert_consistent() const;
  };

  Mutex mutex_{LockRank::kCqLoads};
  std::map<const void*, Load> loads_;
};

}  // namespace dapple::soft::check
