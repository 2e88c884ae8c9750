// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/cm/timers.hpp"

#include <new>

namespace dapple::roce::cm {

bool Timers::create(uint32_t capacity) {
  heap_.reset(new (std::nothrow) Record*[size_t{capacity} + 1]);
  return heap_ != nullptr;
}

void Timers::set(Record& record, Time deadline) {
  if (record.timer_at == 0) place(record, ++size_);
  record.deadline = deadline;
  rise(record);
  sink(record);
}

void Timers::cancel(Record& record) {
  const uint32_t at = record.timer_at;
  if (at == 0) return;
  record.timer_at = 0;
  record.deadline = kNever;
  Record& moved = *heap_[size_--];
  if (&moved == &record) return;
  place(moved, at);
  rise(moved);
  sink(moved);
}

void Timers::rise(Record& record) {
  uint32_t at = record.timer_at;
  for (; at > 1 && heap_[at / 2]->deadline > record.deadline; at /= 2) place(*heap_[at / 2], at);
  place(record, at);
}

void Timers::sink(Record& record) {
  uint32_t at = record.timer_at;
  for (uint32_t child = 2 * at; child <= size_; child = 2 * at) {
    if (child < size_ && heap_[child + 1]->deadline < heap_[child]->deadline) ++child;
    if (heap_[child]->deadline >= record.deadline) break;
    place(*heap_[child], at);
    at = child;
  }
  place(record, at);
}

}  // namespace dapple::roce::cm
