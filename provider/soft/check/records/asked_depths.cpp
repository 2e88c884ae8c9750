// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/asked_depths.hpp"

#include <algorithm>
#include <cassert>

namespace dapple::soft::check {

void AskedDepths::assert_consistent() const {
  assert_held(mutex_);
  // Otherwise exceeded() would overlook a queue.
  assert(queues_.empty() || least_.load() != SIZE_MAX);
}

void AskedDepths::add(const void* queue, size_t depth) {
  const std::lock_guard lock(mutex_);
  queues_[queue] = {depth, false};
  least_.store(std::min(least_.load(), depth));
  assert_consistent();
}

void AskedDepths::remove(const void* queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queue);
  assert_consistent();
}

size_t AskedDepths::depth(const void* queue, size_t granted) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(queue);
  return found == queues_.end() ? granted : found->second.depth;
}

std::optional<size_t> AskedDepths::exceeded(const void* queue, uint64_t held) {
  // Each post comes here, so most need no lock.
  if (held <= least_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(queue);
  if (found == queues_.end() || found->second.told || held <= found->second.depth) return std::nullopt;
  assert(found->second.depth >= least_.load());
  found->second.told = true;
  return found->second.depth;
}

}  // namespace dapple::soft::check
