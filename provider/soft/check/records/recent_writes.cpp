// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/recent_writes.hpp"

#include <cassert>

namespace dapple::soft::check {

void RecentWrites::assert_consistent() const {
  assert_held(mutex_);
  assert(writes_.size() <= kMax);
}

std::optional<RecentWrites::Write> RecentWrites::add(const Write& write) {
  const std::lock_guard lock(mutex_);
  assert(write.qp != nullptr && write.begin <= write.end);
  std::optional<Write> other;
  Write* same = nullptr;
  for (Write& each : writes_) {
    if (each.qp == write.qp) {
      if (each.end == write.begin) same = &each;
    } else if (each.begin < write.end && write.begin < each.end) {
      other = each;
    }
  }
  if (same != nullptr) {
    same->end = write.end;
  } else {
    if (writes_.size() == kMax) writes_.pop_front();
    writes_.push_back(write);
  }
  assert_consistent();
  return other;
}

void RecentWrites::clear() {
  const std::lock_guard lock(mutex_);
  writes_.clear();
}

void RecentWrites::forget(const void* qp) {
  const std::lock_guard lock(mutex_);
  std::erase_if(writes_, [&](const Write& write) { return write.qp == qp; });
  assert_consistent();
}

}  // namespace dapple::soft::check
