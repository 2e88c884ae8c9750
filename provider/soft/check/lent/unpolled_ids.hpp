// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>

namespace dapple::soft::check {

// The wr_ids of requests of one queue pair whose completions the program has not polled. Many requests may have one id.
// Two threads that poll one completion queue may tell of their completions in another order than that of the requests.
//
// `total`: the number of ids of all queue pairs, which changes with the lock of the owner and is read without it.
class UnpolledIds {
 public:
  using Total = std::atomic<size_t>;
  // More than a send queue and a completion queue have together. Some completions never come, such as those that a
  // queue with IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN drops. Then the oldest id is forgotten for a new one.
  static constexpr size_t kMax = 1 << 16;

  void add(uint64_t id, Total& total) {
    if (ids_.size() == kMax) {
      ids_.pop_front();
    } else {
      set(total, total.load(std::memory_order_relaxed) + 1);
    }
    ids_.push_back(id);
  }
  // Takes the oldest one of this id. False: there is none.
  bool take(uint64_t id, Total& total) {
    if (!ids_.empty() && ids_.front() == id) [[likely]] {
      ids_.pop_front();
    } else {
      const auto found = std::find(ids_.begin(), ids_.end(), id);
      if (found == ids_.end()) return false;
      ids_.erase(found);
    }
    set(total, total.load(std::memory_order_relaxed) - 1);
    return true;
  }
  // Takes the newest one of this id, if there is one.
  void take_newest(uint64_t id, Total& total) {
    const auto found = std::find(ids_.rbegin(), ids_.rend(), id);
    if (found == ids_.rend()) return;
    ids_.erase(std::next(found).base());
    set(total, total.load(std::memory_order_relaxed) - 1);
  }
  void clear(Total& total) {
    set(total, total.load(std::memory_order_relaxed) - ids_.size());
    ids_.clear();
  }
  size_t size() const { return ids_.size(); }

 private:
  static void set(Total& total, size_t value) { total.store(value, std::memory_order_release); }

  std::deque<uint64_t> ids_;  // the oldest first
};

}  // namespace dapple::soft::check
