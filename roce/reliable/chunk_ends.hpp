// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The requests that wait for a response: an RDMA Read's chunk, an atomic. Of each one only the last PSN matters. They
// are in the order of their PSNs, and no more than max_rd_atomic.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "roce/packet/psn.hpp"

namespace dapple::roce {

class ChunkEnds {
 public:
  // Memory for `count` requests; false if there is none. Those that wait now stay.
  bool make_room(uint8_t count) {
    if (count <= room_) return true;
    const uint32_t room = std::bit_ceil<uint32_t>(count);
    std::unique_ptr<uint32_t[]> ends(new (std::nothrow) uint32_t[room]);
    if (ends == nullptr) return false;
    for (uint32_t number = head_; number != tail_; number++) ends[number & (room - 1)] = end(number);
    ends_ = std::move(ends);
    room_ = room;
    return true;
  }

  uint32_t count() const { return tail_ - head_; }
  bool empty() const { return tail_ == head_; }
  uint32_t oldest() const { return end(head_); }

  void add(uint32_t psn) {
    assert(count() < room_);
    end(tail_++) = psn;
  }
  void clear() { head_ = tail_ = 0; }
  // Everything before `psn` was answered.
  void drop_before(uint32_t psn) {
    while (!empty() && psn_before(end(head_), psn)) head_++;
  }
  // Everything from `psn` on will be sent again.
  void drop_from(uint32_t psn) {
    while (!empty() && !psn_before(end(tail_ - 1), psn)) tail_--;
  }

 private:
  uint32_t& end(uint32_t number) const {
    assert(room_ != 0);
    return ends_[number & (room_ - 1)];
  }

  std::unique_ptr<uint32_t[]> ends_;
  uint32_t room_ = 0;  // a power of two; 0: none may wait
  uint32_t head_ = 0;  // counts up; the place is modulo room_
  uint32_t tail_ = 0;
};

}  // namespace dapple::roce
