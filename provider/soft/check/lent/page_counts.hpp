// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace dapple::soft::check {

// How many pieces of memory use a page. Several pages share a count, so a piece that is not there may be assumed, but
// none is overlooked.
class PageCounts {
 public:
  void add(uintptr_t begin, uintptr_t end) { change(begin, end, 1); }
  void remove(uintptr_t begin, uintptr_t end) { change(begin, end, UINT32_MAX); }
  bool may_use(uintptr_t begin, uintptr_t end) const {
    if (long_ != 0) return true;
    if (begin >= end) return false;
    const uintptr_t last = (end - 1) / kPage;
    if (last - begin / kPage >= kCounts) return true;
    for (uintptr_t page = begin / kPage; page <= last; page++) {
      if (counts_[page % kCounts] != 0) return true;
    }
    return false;
  }

 private:
  static constexpr uintptr_t kPage = 4096;
  static constexpr size_t kCounts = 4096;

  // `by`: 1, or -1 modulo 2^32.
  void change(uintptr_t begin, uintptr_t end, uint32_t by) {
    assert(begin < end);
    const uintptr_t last = (end - 1) / kPage;
    if (last - begin / kPage >= kCounts) {
      long_ += by;
      return;
    }
    for (uintptr_t page = begin / kPage; page <= last; page++) counts_[page % kCounts] += by;
  }

  uint32_t counts_[kCounts] = {};
  uint32_t long_ = 0;  // pieces that have more pages than there are counts
};

}  // namespace dapple::soft::check
