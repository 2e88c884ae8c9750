// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The room that the program has asked for in its queues. The device grants more (granted_depth.hpp), and another device
// may grant less.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "provider/common/mutex.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf. Any address names a queue.
class AskedDepths {
 public:
  // Also after a change of the queue's size.
  void add(const void* queue, size_t depth);
  void remove(const void* queue);
  // The depth; `granted` if the queue is not known.
  size_t depth(const void* queue, size_t granted);
  // The depth if the queue holds more than that: once for each queue.
  std::optional<size_t> exceeded(const void* queue, uint64_t held);

  Mutex& mutex() { return mutex_; }

 private:
  struct Asked {
    size_t depth;
    bool told;
  };

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  Mutex mutex_{LockRank::kAskedDepths};
  std::map<const void*, Asked> queues_;
  std::atomic<size_t> least_{SIZE_MAX};  // no queue has had a smaller depth
};

}  // namespace dapple::soft::check
