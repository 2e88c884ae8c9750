// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_list.hpp"

#include <errno.h>

#include <algorithm>
#include <cassert>

namespace dapple::soft {

int TagList::initialize(uint32_t max_tags) {
  if (max_tags == 0 || max_tags > kMaxTags) return EINVAL;
  slots_ = make_queue_array<Slot>(max_tags, QueueMemory::kReceives, nullptr);
  segments_ =
      make_queue_array<roce::Segment>(size_t{max_tags} * kMaxTagSegments, QueueMemory::kReceiveSegments, nullptr);
  if (slots_ == nullptr || segments_ == nullptr) return ENOMEM;
  for (uint32_t i = 0; i < max_tags; ++i) slots_[i] = {};
  max_tags_ = max_tags;
  last_ = max_tags - 1;
  return 0;
}

bool TagList::may_follow(State from, State to) {
  switch (to) {
    case State::kFree:
      return from != State::kFree;
    case State::kWaiting:
      return from == State::kFree;
    case State::kListed:
      return from == State::kFree || from == State::kWaiting;
    case State::kTaken:
      return from == State::kListed;
  }
  return false;
}

void TagList::enter(Slot& slot, State to) {
  assert_held(mutex);
  assert(may_follow(slot.state, to));
  slot.state = to;
}

void TagList::assert_consistent() const {
  assert_held(mutex);
  assert(listed_ <= used_ && used_ <= max_tags_ && last_ < max_tags_);
  assert(listed_ == 0 || order_[listed_ - 1] < max_tags_);
  assert(listed_ == 0 || slots_[order_[0]].state == State::kWaiting || slots_[order_[0]].state == State::kListed);
}

uint32_t TagList::add(const NewTag& made) {
  assert(!is_full() && made.segments.size() <= kMaxTagSegments);
  // In turns: a program that removes an entry late means the one that had the place before.
  do {
    last_ = last_ + 1 == max_tags_ ? 0 : last_ + 1;
  } while (slots_[last_].state != State::kFree);
  Slot& slot = slots_[last_];
  slot.id = made.id;
  slot.tag = made.tag;
  slot.mask = made.mask;
  slot.mark = made.mark;
  slot.segment_count = static_cast<uint8_t>(made.segments.size());
  ++slot.generation;
  copy_segments(made.segments, &segments_[size_t{last_} * kMaxTagSegments]);
  enter(slot, is_in_step() ? State::kListed : State::kWaiting);
  order_[listed_++] = static_cast<uint8_t>(last_);
  ++used_;
  assert_consistent();
  return slot.generation << kIndexBits | last_;
}

void TagList::unlist(uint32_t index) {
  uint8_t* const end = order_ + listed_;
  uint8_t* const found = std::find(order_, end, static_cast<uint8_t>(index));
  assert(found != end);
  std::copy(found + 1, end, found);
  --listed_;
}

bool TagList::remove(uint32_t handle) {
  assert(is_handle(handle));
  const uint32_t index = place_of(handle);
  Slot& slot = slots_[index];
  const bool is_there = slot.state == State::kWaiting || slot.state == State::kListed;
  if (!is_there || (slot.generation << kIndexBits | index) != handle) return false;
  unlist(index);
  enter(slot, State::kFree);
  --used_;
  assert_consistent();
  return true;
}

void TagList::tell_read(uint32_t count) {
  assert_held(mutex);
  read_ = static_cast<uint16_t>(count);
  if (!is_in_step()) return;
  for (uint32_t i = 0; i < listed_; ++i) {
    if (Slot& slot = slots_[order_[i]]; slot.state == State::kWaiting) enter(slot, State::kListed);
  }
  assert_consistent();
}

uint32_t TagList::find(uint64_t tag) const {
  assert_held(mutex);
  for (uint32_t i = 0; i < listed_; ++i) {
    const Slot& slot = slots_[order_[i]];
    if (slot.state == State::kListed && (tag & slot.mask) == slot.tag) return order_[i];
  }
  return kNone;
}

void TagList::take(uint32_t index) {
  assert(index < max_tags_);
  unlist(index);
  enter(slots_[index], State::kTaken);
  assert_consistent();
}

void TagList::release(uint32_t index) {
  assert(index < max_tags_ && slots_[index].state == State::kTaken);
  enter(slots_[index], State::kFree);
  --used_;
  assert_consistent();
}

}  // namespace dapple::soft
