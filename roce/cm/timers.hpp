// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The records' deadlines: a heap with room for every record.
#ifndef DAPPLE_ROCE_CM_TIMERS_HPP
#define DAPPLE_ROCE_CM_TIMERS_HPP

#include <memory>

#include "roce/cm/record.hpp"

namespace dapple::roce::cm {

class Timers {
 public:
  // False if there is no memory.
  bool create(uint32_t capacity);

  // In place of the record's deadline before.
  void set(Record& record, Time deadline);
  void cancel(Record& record);

  // The record with the earliest deadline, or nullptr.
  Record* first() const { return size_ == 0 ? nullptr : heap_[1]; }

 private:
  void place(Record& record, uint32_t at) {
    heap_[at] = &record;
    record.timer_at = at;
  }
  void rise(Record& record);
  void sink(Record& record);

  std::unique_ptr<Record*[]> heap_;
  uint32_t size_ = 0;
};

}  // namespace dapple::roce::cm

#endif  // DAPPLE_ROCE_CM_TIMERS_HPP
