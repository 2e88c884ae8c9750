// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The queue pairs of this process by their numbers. Packets find them under the lock of receiving, which remove()
// needs, too. A thread that keeps one for longer pins it: then removing it waits.
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include <atomic>
#include <cassert>
#include <memory>
#include <mutex>

#include "provider/common/mutex.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/objects/objects.hpp"

namespace dapple::soft {

// A large slot has as many numbers. The places of the numbers that a small slot lacks stay empty.
inline constexpr uint32_t kQpsOfASlot = 1 << kLargeSlotBits;

class QpTable {
 public:
  // random: where numbers begin.
  QpTable(uint32_t slot, uint32_t random);
  // The other functions need it.
  bool has_memory() const { return qps_ != nullptr; }

  // Any thread may call these three.
  //
  // The queue pair's new number; numbers go around, so that a number is not reused soon. 0 if all are taken.
  uint32_t add(Qp& qp);
  // The queue pair is complete: from now on it is found.
  static void open(Qp& qp) { qp.scheduling.open.store(true, std::memory_order_release); }
  // Afterwards no thread has it pinned. The caller pins nothing; it holds `receiving` and no other lock.
  void remove(Qp& qp, std::unique_lock<BiasedMutex> receiving);

  // The queue pairs that have room, of any slot with so many numbers: the first slot lacks some.
  uint32_t most() const { return numbers_ - 1; }
  // Tells whether it is one of the slot's numbers.
  bool has_number(uint32_t qpn) const { return qpn - first_ < numbers_; }

  // One of those that this device has open, or null. The caller must see to it that no other thread removes it.
  Qp* any_of(const Context& context);

  // Called under the lock of receiving. Null if there is none.
  Qp* find(uint32_t qpn) const {
    if (qpn - first_ >= kQpsOfASlot) return nullptr;
    Qp* qp = qps_[qpn - first_].load(std::memory_order_acquire);
    return qp != nullptr && qp->scheduling.open.load(std::memory_order_acquire) ? qp : nullptr;
  }
  static void pin(Qp& qp) { qp.scheduling.pins.fetch_add(1, std::memory_order_relaxed); }
  static void unpin(Qp& qp) {
    [[maybe_unused]] const uint32_t before = qp.scheduling.pins.fetch_sub(1, std::memory_order_release);
    assert(before > 0);
  }

 private:
  Mutex mutex_{LockRank::kQpTable};
  const uint32_t first_;
  const uint32_t numbers_;
  uint32_t next_;
  // kQpsOfASlot places. Those that were never in use take no memory.
  struct Free {
    void operator()(std::atomic<Qp*>* places) const { free(places); }
  };
  const std::unique_ptr<std::atomic<Qp*>[], Free> qps_;
};

}  // namespace dapple::soft
