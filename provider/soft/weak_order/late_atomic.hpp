// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// order=weak of DAPPLE_FAULTS: an atomic of a peer that has loaded and not yet stored. The CPU and the Writes of other
// queue pairs may change the word in between; the store overwrites what they did.
#pragma once

#include <atomic>
#include <cstdint>

#include "provider/common/mutex.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

struct AtomicRequest {
  roce::Accessor who;
  uint32_t rkey = 0;
  uint64_t address = 0;
  bool is_compare_swap = false;
  uint64_t compare = 0;
  uint64_t swap_or_add = 0;
};

// One in a process, because the next atomic of any queue pair stores first. Any thread.
class LateAtomic {
 public:
  constexpr LateAtomic() = default;

  // Executes an atomic of this owner, whose store comes later if `is_late`.
  roce::Fault execute(const void* owner, roce::Memory& memory, const AtomicRequest& request, bool is_late,
                      uint64_t& original);
  // Whether an atomic of this owner waits for its store.
  bool is_of(const void* owner) const { return owner_.load(std::memory_order_relaxed) == owner; }
  // Stores, if the atomic is of this owner.
  void store_of(const void* owner, roce::Memory& memory);
  // The owner is about to end, and its memory with it.
  void forget(const void* owner);

 private:
  void store(roce::Memory& memory);
  void clear();

  Mutex mutex_{LockRank::kLateAtomic};
  std::atomic<const void*> owner_{nullptr};
  AtomicRequest request_;
  uint64_t loaded_ = 0;
  uint64_t next_ = 0;
};

inline constinit LateAtomic late_atomic;

}  // namespace dapple::soft
