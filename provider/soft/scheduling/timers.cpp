// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/timers.hpp"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/scheduling/qp_table.hpp"

namespace dapple::soft {

bool Timers::make_room() {
  const std::lock_guard lock(mutex_);
  if (members_ == room_) {
    const uint32_t room = std::max<uint32_t>(16, room_ * 2);
    std::unique_ptr<Qp*[]> heap(new (std::nothrow) Qp*[room]);
    if (heap == nullptr) return false;
    std::copy_n(heap_.get(), size_, heap.get());
    heap_ = std::move(heap);
    room_ = room;
  }
  ++members_;
  return true;
}

void Timers::remove(Qp& qp) {
  const std::lock_guard lock(mutex_);
  assert(members_ > 0);
  --members_;
  if (qp.scheduling.scheduled.load(std::memory_order_relaxed) == roce::kNever) return;
  take_out(qp.scheduling.heap_index);
  publish();
}

bool Timers::schedule(Qp& qp, roce::Time deadline) {
  assert_held(qp.mutex);
  if (deadline >= qp.scheduling.scheduled.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  const bool is_new = qp.scheduling.scheduled.load(std::memory_order_relaxed) == roce::kNever;
  qp.scheduling.scheduled.store(deadline, std::memory_order_relaxed);
  // make_room() has been called for each queue pair.
  assert(size_ < members_ || !is_new);
  if (is_new) place(size_++, &qp);
  rise(qp.scheduling.heap_index);
  publish();
  return heap_[0] == &qp;
}

Qp* Timers::pop_due(roce::Time now) {
  if (earliest() > now) return nullptr;
  const std::lock_guard lock(mutex_);
  if (size_ == 0) return nullptr;
  Qp* qp = heap_[0];
  if (qp->scheduling.scheduled.load(std::memory_order_relaxed) > now) return nullptr;
  take_out(0);
  publish();
  // The queue pair was in the heap, so it is not destroyed yet.
  QpTable::pin(*qp);
  return qp;
}

bool Timers::before(uint32_t a, uint32_t b) const {
  return heap_[a]->scheduling.scheduled.load(std::memory_order_relaxed) <
         heap_[b]->scheduling.scheduled.load(std::memory_order_relaxed);
}

void Timers::place(uint32_t at, Qp* qp) {
  assert(at < room_);
  heap_[at] = qp;
  qp->scheduling.heap_index = at;
}

void Timers::rise(uint32_t at) {
  for (uint32_t up; at > 0 && before(at, up = (at - 1) / 2); at = up) {
    Qp* qp = heap_[at];
    place(at, heap_[up]);
    place(up, qp);
  }
}

void Timers::sink(uint32_t at) {
  for (;;) {
    uint32_t least = at;
    for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < size_; ++child) {
      if (before(child, least)) least = child;
    }
    if (least == at) return;
    Qp* qp = heap_[at];
    place(at, heap_[least]);
    place(least, qp);
    at = least;
  }
}

void Timers::take_out(uint32_t at) {
  assert(at < size_ && heap_[at]->scheduling.heap_index == at);
  heap_[at]->scheduling.scheduled.store(roce::kNever, std::memory_order_relaxed);
  --size_;
  if (at == size_) return;
  place(at, heap_[size_]);
  rise(at);
  sink(at);
}

void Timers::publish() {
  assert_held(mutex_);
  earliest_.store(size_ == 0 ? roce::kNever : heap_[0]->scheduling.scheduled.load(std::memory_order_relaxed));
}

}  // namespace dapple::soft
