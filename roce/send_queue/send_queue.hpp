// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The send queue: requests from post to completion, in order. Each request has room for its segments or inline bytes.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "roce/host/qp_attributes.hpp"
#include "roce/host/send_memory.hpp"
#include "roce/host/send_operations.hpp"
#include "roce/send_queue/send_entry.hpp"

namespace dapple::roce {

// Tells whether the request's bytes are copied when it is posted.
inline bool goes_inline(const SendRequest& request) {
  return (request.flags & kInline) != 0 && (kSends | kWrites).has(request.opcode);
}

// Copies the bytes of a request that goes inline.
inline void copy_bytes(std::span<const Segment> segments, std::byte* to) {
  for (const Segment& segment : segments) {
    if (segment.length == 0) continue;
    std::memcpy(to, reinterpret_cast<const void*>(segment.address), segment.length);
    to += segment.length;
  }
}

// Numbers of entries count up from 0 and begin again only after clear().
class SendQueue {
 public:
  bool create(const QpConfig& config);

  uint64_t head() const { return head_; }
  uint64_t tail() const { return tail_; }
  bool empty() const { return head_ == tail_; }
  bool is_half_full() const { return 2 * (tail_ - head_ + 1) >= depth_; }
  SendEntry& operator[](uint64_t number) {
    assert(number >= head_ && number < tail_);
    return entries_[number & mask_];
  }
  SendEntry& front() { return (*this)[head_]; }
  const SendEntry& front() const {
    assert(!empty());
    return entries_[head_ & mask_];
  }

  // Tells whether push() would take the request after `ahead` others. It takes operations that the transport lacks:
  // they complete with an error in their turn.
  PostError check(const SendRequest& request, uint32_t ahead) const;
  PostError push(const SendRequest& request);
  // The same two functions for a plain Send that fits into a packet.
  bool takes(const PlainSend& request, uint64_t length) const {
    if (tail_ - head_ >= depth_) return false;
    return (request.flags & kInline) != 0 ? length <= max_inline_ : request.segments.size() <= max_segments_;
  }
  SendEntry& push(const PlainSend& request, uint64_t length) {
    assert(takes(request, length));
    // The other fields keep their values: nothing reads them for a plain Send, or the caller sets them.
    SendEntry& entry = begin(request.id, SendOpcode::kSend, request.flags);
    entry.mark = 0;
    entry.length = static_cast<uint32_t>(length);
    entry.set_bare();
    keep(entry, request.segments, (request.flags & kInline) != 0);
    return entry;
  }
  // The request that was posted, with its segments in the queue, which are valid until the entry leaves it. One with
  // inline bytes has no segments.
  SendRequest request_of(const SendEntry& entry) const;
  // Empty if it has inline bytes.
  std::span<const Segment> segments(const SendEntry& entry) const {
    assert(entry.is_inline() || entry.segment_count <= max_segments_);
    return {place_of(entry), entry.is_inline() ? size_t{0} : entry.segment_count};
  }
  // Null if it has none.
  const std::byte* inline_bytes(const SendEntry& entry) const {
    return entry.is_inline() ? reinterpret_cast<const std::byte*>(place_of(entry)) : nullptr;
  }
  void pop(uint64_t count = 1) {
    assert(count <= tail_ - head_);
    head_ += count;
  }
  // The number of quiet requests at the head. Each has one packet, so their PSNs follow each other.
  uint64_t quiet() {
    if (quiet_end_ < head_) quiet_end_ = head_;
    while (quiet_end_ < tail_ && entries_[quiet_end_ & mask_].is_quiet()) quiet_end_++;
    assert(quiet_end_ <= tail_);
    return quiet_end_ - head_;
  }
  // The request fails: it will have a completion.
  void fail(SendEntry& entry, CompletionStatus status) {
    assert(!empty() && !entry.has_failed() && status != CompletionStatus::kSuccess);
    entry.status = status;
    if (entry.is_quiet()) entry.progress = SendEntry::Progress::kStarted;
    quiet_end_ = head_;
  }
  void clear() { head_ = tail_ = quiet_end_ = 0; }
  void assert_consistent() const {
    assert(head_ <= tail_ && tail_ - head_ <= depth_);
    assert(depth_ <= mask_ + 1 && quiet_end_ <= tail_);
  }

 private:
  class Free {
   public:
    Free() : from_(nullptr) {}
    explicit Free(SendMemory* from) : from_(from) {}
    void operator()(SendEntry* entries) const;
    void operator()(Segment* segments) const;

   private:
    SendMemory* from_;  // null: the memory is our own
  };
  template <typename Element>
  static std::unique_ptr<Element[], Free> make(SendMemory* memory, SendMemory::Part part, size_t count);

  // The entry behind the last one. keep() makes it the last one.
  SendEntry& begin(uint64_t id, SendOpcode opcode, uint8_t flags) {
    assert(tail_ - head_ < depth_);
    SendEntry& entry = entries_[tail_ & mask_];
    entry.id = id;
    entry.opcode = opcode;
    entry.flags = flags;
    entry.status = CompletionStatus::kSuccess;
    return entry;
  }
  void keep_part_of_send(SendEntry& entry, const SendRequest& request) const;
  // The place of the next entry.
  Segment* next_place() { return &segments_[(tail_ & mask_) * place_size_]; }
  // Copies the segments, which may be there already, or the inline bytes of the new entry.
  void keep(SendEntry& entry, std::span<const Segment> segments, bool is_inline) {
    Segment* to = next_place();
    tail_++;
    if (is_inline) {
      assert(length_of(segments) <= max_inline_);
      entry.segment_count = SendEntry::kInlineBytes;
      copy_bytes(segments, reinterpret_cast<std::byte*>(to));
    } else {
      assert(segments.size() <= max_segments_);
      entry.segment_count = static_cast<uint8_t>(segments.size());
      copy_segments(segments, to);
    }
  }
  const Segment* place_of(const SendEntry& entry) const {
    return &segments_[static_cast<size_t>(&entry - entries_.get()) * place_size_];
  }

  OpcodeSet operations_ = kOfReliable;
  uint64_t most_posted_ = 0;  // bytes of a message
  uint32_t depth_ = 0;
  uint32_t mask_ = 0;  // for the place of a number: there is room for a power of two
  uint32_t max_segments_ = 0;
  uint32_t max_inline_ = 0;
  // Beside its bytes, a Send has nothing or the part of its transport.
  SendEntry::Part part_of_sends_ = SendEntry::Part::kBare;
  std::unique_ptr<SendEntry[], Free> entries_;
  // place_size_ for each entry: room for its segments, or for its inline bytes instead.
  std::unique_ptr<Segment[], Free> segments_;
  size_t place_size_ = 0;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  uint64_t quiet_end_ = 0;  // the requests from head_ to here are quiet
};

CompletionOpcode completion_opcode(SendOpcode opcode);

}  // namespace dapple::roce
