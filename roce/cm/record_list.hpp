// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A list of records in the order in which they came. A record is in a list by one of its members, so it may be in
// several lists.
#pragma once

#include <cassert>

#include "roce/cm/record.hpp"

namespace dapple::roce::cm {

template <Record::Links Record::*links>
class RecordList {
 public:
  void add(Record& record) {
    assert((record.*links).older == nullptr && (record.*links).newer == nullptr && newest_ != &record);
    record.*links = {newest_, nullptr};
    (newest_ == nullptr ? oldest_ : (newest_->*links).newer) = &record;
    newest_ = &record;
    ++size_;
  }
  // The record is in the list.
  void remove(Record& record) {
    assert(size_ > 0);
    Record* const older = (record.*links).older;
    Record* const newer = (record.*links).newer;
    assert(older == nullptr ? oldest_ == &record : (older->*links).newer == &record);
    assert(newer == nullptr ? newest_ == &record : (newer->*links).older == &record);
    (older == nullptr ? oldest_ : (older->*links).newer) = newer;
    (newer == nullptr ? newest_ : (newer->*links).older) = older;
    record.*links = {};
    --size_;
    assert((size_ == 0) == (oldest_ == nullptr));
  }

  // nullptr if there is none.
  Record* oldest() const { return oldest_; }
  static Record* newer_than(const Record& record) { return (record.*links).newer; }
  uint32_t size() const { return size_; }

 private:
  Record* oldest_ = nullptr;
  Record* newest_ = nullptr;
  uint32_t size_ = 0;
};

// Passive connections whose REP nobody has confirmed: all of them, and those of one listener.
using Unconfirmed = RecordList<&Record::among_unconfirmed>;
using UnconfirmedOfOne = RecordList<&Record::among_listeners>;
// Records that their consumer has destroyed.
using Remembered = RecordList<&Record::among_remembered>;

}  // namespace dapple::roce::cm
