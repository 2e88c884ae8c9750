// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The list of tags of a shared receive queue. An entry is the memory for one message, with the tag that the message
// must have. Messages take the oldest entry that they match.
//
// The device counts the messages that have matched nothing, and the program tells how many of these it has read. As
// long as the two counts differ, new entries wait: the program may find the message for one of them among those that it
// has not read. They are in effect when the counts agree.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <span>

#include "provider/common/mutex.hpp"
#include "provider/soft/objects/queues/queue_allocator.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft {

inline constexpr uint32_t kMaxTags = 127;       // of a list, as a ConnectX-5
inline constexpr uint32_t kMaxTagSegments = 8;  // of an entry

struct NewTag {
  uint64_t id = 0;  // of the completions of its message
  uint64_t tag = 0;
  uint64_t mask = 0;  // a message matches with the tag in these bits
  std::span<const roce::Segment> segments;
  uint16_t mark = 0;  // as in roce::ReceiveRequest
};

// All functions but the first need the lock, because a completion belongs to most changes.
class TagList {
 public:
  // 0, EINVAL for no tags or more than kMaxTags, or ENOMEM.
  int initialize(uint32_t max_tags);

  uint32_t max_tags() const { return max_tags_; }
  uint32_t count() const { return used_; }
  bool is_full() const { return used_ == max_tags_; }
  // Returns the entry's handle. The list is not full, and the entry has at most kMaxTagSegments.
  uint32_t add(const NewTag& made);
  static uint32_t place_of(uint32_t handle) { return handle & kIndexMask; }
  // False for a number that no entry can have.
  bool is_handle(uint32_t handle) const { return place_of(handle) < max_tags_; }
  // False if a message has taken the entry, or the program has removed it.
  bool remove(uint32_t handle);

  // The program has read so many unexpected messages, modulo 2^16.
  void tell_read(uint32_t count);
  // The counts agree.
  bool is_in_step() const { return read_ == unexpected_; }
  // So many messages have come that the program should tell of them.
  bool is_far_behind() const { return static_cast<uint16_t>(unexpected_ - read_) > kMaxBehind; }
  void count_unexpected() { ++unexpected_; }

  static constexpr uint32_t kNone = UINT32_MAX;
  // The oldest entry in effect that this tag matches, or kNone.
  uint32_t find(uint64_t tag) const;
  // A message takes the entry, whose place is kept until release().
  void take(uint32_t index);
  void release(uint32_t index);

  // Of an entry that a message has taken: without the lock.
  uint64_t id_of(uint32_t index) const { return slots_[index].id; }
  uint16_t mark_of(uint32_t index) const { return slots_[index].mark; }
  std::span<const roce::Segment> segments_of(uint32_t index) const {
    return {&segments_[size_t{index} * kMaxTagSegments], slots_[index].segment_count};
  }

  Mutex mutex{LockRank::kTagList};

 private:
  enum class State : uint8_t {
    kFree,
    kWaiting,  // for the counts to agree
    kListed,   // in effect
    kTaken,
  };
  struct Slot {
    uint64_t id;
    uint64_t tag;
    uint64_t mask;
    uint32_t generation;  // a part of the handle: that of an earlier entry does not name a later one
    uint16_t mark;
    uint8_t segment_count;
    State state;
  };
  static bool may_follow(State from, State to);
  void enter(Slot& slot, State to);
  void unlist(uint32_t index);
  void assert_consistent() const;

  static constexpr uint32_t kIndexBits = 8;
  static constexpr uint32_t kIndexMask = (1 << kIndexBits) - 1;
  // As mlx5 does.
  static constexpr uint16_t kMaxBehind = 0x3FFF;
  static_assert(kMaxTags <= kIndexMask);

  uint32_t max_tags_ = 0;
  uint32_t used_ = 0;    // entries that are not free
  uint32_t listed_ = 0;  // of order_
  uint32_t last_ = 0;    // the place that was given last
  uint16_t unexpected_ = 0;
  uint16_t read_ = 0;
  QueueArray<Slot> slots_;
  QueueArray<roce::Segment> segments_;  // kMaxTagSegments for each slot
  uint8_t order_[kMaxTags] = {};        // the entries that wait or are in effect, the oldest first
};

}  // namespace dapple::soft
