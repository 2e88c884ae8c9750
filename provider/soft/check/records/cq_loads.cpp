// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/cq_loads.hpp"

#include <cassert>

namespace dapple::soft::check {

// The sum of all depths would take too long.
void CqLoads::Load::assert_consistent() const {
  assert(!queues.empty() || requests == 0);
  assert(queues.empty() || requests >= queues.begin()->second.depth);
}

void CqLoads::add(const void* cq, const void* queue, size_t depth) {
  const std::lock_guard lock(mutex_);
  Load& load = loads_[cq];
  const auto [found, is_new] = load.queues.emplace(queue, Queue{depth, 0});
  found->second.users++;
  if (is_new) load.requests += depth;
  assert(load.requests >= found->second.depth);
  load.assert_consistent();
}

void CqLoads::remove(const void* cq, const void* queue) {
  const std::lock_guard lock(mutex_);
  const auto load = loads_.find(cq);
  if (load == loads_.end()) return;
  const auto found = load->second.queues.find(queue);
  if (found == load->second.queues.end()) return;
  assert(found->second.users > 0);
  if (--found->second.users != 0) return;
  assert(load->second.requests >= found->second.depth);
  load->second.requests -= found->second.depth;
  load->second.queues.erase(found);
  load->second.assert_consistent();
}

void CqLoads::forget(const void* cq) {
  const std::lock_guard lock(mutex_);
  loads_.erase(cq);
}

std::optional<uint64_t> CqLoads::excess(const void* cq, size_t size) {
  const std::lock_guard lock(mutex_);
  const auto load = loads_.find(cq);
  if (load == loads_.end() || load->second.told || load->second.requests <= size) return std::nullopt;
  load->second.told = true;
  load->second.assert_consistent();
  return load->second.requests;
}

}  // namespace dapple::soft::check
