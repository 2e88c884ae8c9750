// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/qp_table.hpp"

#include <sched.h>

#include <cassert>
#include <type_traits>

namespace dapple::soft {

// The system's zeros are null pointers.
QpTable::QpTable(uint32_t slot, uint32_t random)
    : first_(first_qpn(slot)),
      numbers_(qpns_of(slot)),
      next_(random % numbers_),
      qps_(static_cast<std::atomic<Qp*>*>(calloc(kQpsOfASlot, sizeof(std::atomic<Qp*>)))) {
  static_assert(std::is_trivially_destructible_v<std::atomic<Qp*>>);
}

uint32_t QpTable::add(Qp& qp) {
  const std::lock_guard lock(mutex_);
  for (uint32_t tried = 0; tried < numbers_; ++tried) {
    const uint32_t at = next_;
    next_ = (next_ + 1) % numbers_;
    // Numbers 0 and 1 are the port's own.
    if (qps_[at].load(std::memory_order_relaxed) != nullptr || first_ + at < 2) continue;
    assert(!qp.scheduling.open.load());
    qp.qpn = first_ + at;
    qps_[at].store(&qp, std::memory_order_release);
    return qp.qpn;
  }
  return 0;
}

Qp* QpTable::any_of(const Context& context) {
  const std::lock_guard lock(mutex_);
  for (uint32_t at = 0; at < numbers_; at++) {
    Qp* qp = qps_[at].load(std::memory_order_relaxed);
    if (qp != nullptr && qp->context == &context) return qp;
  }
  return nullptr;
}

void QpTable::remove(Qp& qp, std::unique_lock<BiasedMutex> receiving) {
  assert(receiving.owns_lock());
  {
    const std::lock_guard lock(mutex_);
    assert(has_number(qp.qpn));
    assert(qps_[qp.qpn - first_].load(std::memory_order_relaxed) == &qp);
    qps_[qp.qpn - first_].store(nullptr, std::memory_order_relaxed);
  }
  receiving.unlock();
  while (qp.scheduling.pins.load(std::memory_order_acquire) != 0) sched_yield();
}

}  // namespace dapple::soft
