// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/late_atomic.hpp"

#include <cassert>
#include <mutex>

#include "provider/soft/weak_order/waits.hpp"

namespace dapple::soft {

roce::Fault LateAtomic::execute(const void* owner, roce::Memory& memory, const AtomicRequest& request, bool is_late,
                                uint64_t& original) {
  const std::lock_guard lock(mutex_);
  store(memory);
  if (!is_late && request.is_compare_swap) {
    return memory.compare_swap(request.who, request.rkey, request.address, request.compare, request.swap_or_add,
                               original);
  }
  // The lower layers have no load, so a late one adds 0.
  const uint64_t add = is_late ? 0 : request.swap_or_add;
  const roce::Fault fault = memory.fetch_add(request.who, request.rkey, request.address, add, original);
  if (fault != roce::Fault::kNone || !is_late) return fault;
  if (request.is_compare_swap && original != request.compare) return fault;
  request_ = request;
  loaded_ = original;
  next_ = request.is_compare_swap ? request.swap_or_add : original + request.swap_or_add;
  owner_.store(owner, std::memory_order_relaxed);
  kept_bytes.begin();
  return fault;
}

// Another queue pair's memory serves as well: the request says whose access it is. A region that has been deregistered
// gets nothing.
void LateAtomic::store(roce::Memory& memory) {
  if (owner_.load(std::memory_order_relaxed) == nullptr) return;
  uint64_t expected = loaded_, found = 0;
  while (memory.compare_swap(request_.who, request_.rkey, request_.address, expected, next_, found) ==
             roce::Fault::kNone &&
         found != expected) {
    expected = found;
  }
  clear();
}

void LateAtomic::clear() {
  assert(kept_bytes.any());
  owner_.store(nullptr, std::memory_order_relaxed);
  kept_bytes.end();
}

void LateAtomic::store_of(const void* owner, roce::Memory& memory) {
  if (!is_of(owner)) return;
  const std::lock_guard lock(mutex_);
  if (is_of(owner)) store(memory);
}

void LateAtomic::forget(const void* owner) {
  const std::lock_guard lock(mutex_);
  if (is_of(owner)) clear();
}

}  // namespace dapple::soft
