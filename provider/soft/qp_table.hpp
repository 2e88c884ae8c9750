// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The queue pairs of this process by their numbers. A thread that finds one pins it: destroying it waits.
#ifndef DAPPLE_PROVIDER_SOFT_QP_TABLE_HPP
#define DAPPLE_PROVIDER_SOFT_QP_TABLE_HPP

#include <stdint.h>

#include <cassert>
#include <mutex>

#include "provider/soft/objects.hpp"

namespace dapple::soft {

inline constexpr uint32_t kQpsOfASlot = 1 << 16;

// Internally locked.
class QpTable {
 public:
  // first: the slot's first number. random: where numbers begin.
  QpTable(uint32_t first, uint32_t random) : first_(first), next_(random % kQpsOfASlot) {}

  // The queue pair's new number; numbers go around, so that a number is not reused soon. 0 if all are taken.
  uint32_t add(Qp& qp);
  // The queue pair is complete: from now on it is found.
  void open(Qp& qp);
  // Afterwards no thread has it pinned. The caller pins nothing and holds no lock.
  void remove(Qp& qp);

  Qp* pin(uint32_t qpn);
  static void pin(Qp& qp) { qp.pins.fetch_add(1, std::memory_order_relaxed); }
  static void unpin(Qp& qp) {
    [[maybe_unused]] const uint32_t before = qp.pins.fetch_sub(1, std::memory_order_release);
    assert(before > 0);
  }

 private:
  std::mutex mutex_;
  const uint32_t first_;
  uint32_t next_;
  Qp* qps_[kQpsOfASlot] = {};
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_QP_TABLE_HPP
