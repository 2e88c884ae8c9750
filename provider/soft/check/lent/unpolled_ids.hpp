// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace dapple::soft::check {

// The wr_ids of requests whose completions the program has not polled. Many requests may have one id. Two threads that
// poll one completion queue may tell of their completions in another order than that of the requests.
class UnpolledIds {
 public:
  // More than a send queue and a completion queue have together. Some completions never come, such as those that a
  // queue with IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN drops.
  static constexpr size_t kMax = 1 << 16;

  // False if the oldest one was forgotten for it.
  bool add(uint64_t id) {
    const bool has_room = ids_.size() < kMax;
    if (!has_room) ids_.pop_front();
    ids_.push_back(id);
    return has_room;
  }
  // Takes the oldest one of this id. False: there is none.
  bool take(uint64_t id) {
    if (!ids_.empty() && ids_.front() == id) [[likely]] {
      ids_.pop_front();
      return true;
    }
    const auto found = std::find(ids_.begin(), ids_.end(), id);
    if (found == ids_.end()) return false;
    ids_.erase(found);
    return true;
  }
  // The same with the newest one.
  bool take_newest(uint64_t id) {
    const auto found = std::find(ids_.rbegin(), ids_.rend(), id);
    if (found == ids_.rend()) return false;
    ids_.erase(std::next(found).base());
    return true;
  }
  size_t size() const { return ids_.size(); }

 private:
  std::deque<uint64_t> ids_;  // the oldest first
};

}  // namespace dapple::soft::check
