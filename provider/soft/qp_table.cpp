// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/qp_table.hpp"

#include <sched.h>

#include <cassert>

namespace dapple::soft {

uint32_t QpTable::add(Qp& qp) {
  const std::lock_guard lock(mutex_);
  for (uint32_t tried = 0; tried < kQpsOfASlot; ++tried) {
    const uint32_t at = next_;
    next_ = (next_ + 1) % kQpsOfASlot;
    // Numbers 0 and 1 are the port's own.
    if (qps_[at] != nullptr || first_ + at < 2) continue;
    qps_[at] = &qp;
    qp.qpn = first_ + at;
    return qp.qpn;
  }
  return 0;
}

void QpTable::open(Qp& qp) {
  const std::lock_guard lock(mutex_);
  qp.open = true;
}

void QpTable::remove(Qp& qp) {
  {
    const std::lock_guard lock(mutex_);
    assert(qps_[qp.qpn - first_] == &qp);
    qps_[qp.qpn - first_] = nullptr;
  }
  while (qp.pins.load(std::memory_order_acquire) != 0) sched_yield();
}

Qp* QpTable::pin(uint32_t qpn) {
  if (qpn - first_ >= kQpsOfASlot) return nullptr;
  const std::lock_guard lock(mutex_);
  Qp* qp = qps_[qpn - first_];
  if (qp == nullptr || !qp->open) return nullptr;
  pin(*qp);
  return qp;
}

}  // namespace dapple::soft
