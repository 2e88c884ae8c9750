// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/ready.hpp"

#include <cassert>
#include <mutex>

#include "provider/soft/scheduling/qp_table.hpp"

namespace dapple::soft {

bool Ready::add(Qp& qp) {
  assert_held(qp.mutex);
  if (qp.scheduling.ready) return false;
  qp.scheduling.ready = true;
  QpTable::pin(qp);
  const std::lock_guard lock(mutex_);
  qp.scheduling.next_ready = nullptr;
  (first_ == nullptr ? first_ : last_->scheduling.next_ready) = &qp;
  last_ = &qp;
  any_.store(true);
  return true;
}

void Ready::forget(Qp& qp) {
  assert(qp.scheduling.ends);
  const std::lock_guard lock(mutex_);
  Qp* before = nullptr;
  for (Qp* at = first_; at != nullptr; before = at, at = at->scheduling.next_ready) {
    if (at != &qp) continue;
    (before == nullptr ? first_ : before->scheduling.next_ready) = qp.scheduling.next_ready;
    if (last_ == &qp) last_ = before;
    QpTable::unpin(qp);
    return;
  }
}

Qp* Ready::take(const Qp*& last) {
  const std::lock_guard lock(mutex_);
  Qp* qp = first_;
  if (last == nullptr) last = last_;
  if (qp != nullptr) first_ = qp->scheduling.next_ready;
  if (first_ == nullptr) {
    last_ = nullptr;
    any_.store(false, std::memory_order_relaxed);
  }
  return qp;
}

void Ready::began(Qp& qp) {
  assert_held(qp.mutex);
  assert(qp.scheduling.ready);
  qp.scheduling.ready = false;
}

}  // namespace dapple::soft
