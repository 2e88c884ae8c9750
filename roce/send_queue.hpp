// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The send queue: requests from post to completion, in order. Each request has room for its segments and inline bytes.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>

#include "roce/queue_pair.hpp"

namespace dapple::roce {

class OpcodeSet {
 public:
  constexpr OpcodeSet(std::initializer_list<SendOpcode> opcodes) {
    for (const SendOpcode opcode : opcodes) bits_ |= 1u << static_cast<unsigned>(opcode);
  }
  constexpr bool has(SendOpcode opcode) const {
    return static_cast<unsigned>(opcode) < 32 && (bits_ >> static_cast<unsigned>(opcode) & 1) != 0;
  }
  friend constexpr OpcodeSet operator-(OpcodeSet a, OpcodeSet b) {
    a.bits_ &= ~b.bits_;
    return a;
  }
  friend constexpr OpcodeSet operator|(OpcodeSet a, OpcodeSet b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  uint32_t bits_ = 0;
};

inline constexpr OpcodeSet kSends = {SendOpcode::kSend, SendOpcode::kSendImmediate, SendOpcode::kSendInvalidate};
inline constexpr OpcodeSet kWrites = {SendOpcode::kWrite, SendOpcode::kWriteImmediate};
// The responder answers with data: RDMA Reads, atomics, and requests that the kernel's rxe answers like a Read.
inline constexpr OpcodeSet kWithResponse = {SendOpcode::kRead, SendOpcode::kCompareSwap, SendOpcode::kFetchAdd,
                                            SendOpcode::kFlush, SendOpcode::kAtomicWrite};
// Nothing is sent.
inline constexpr OpcodeSet kLocal = {SendOpcode::kLocalInvalidate, SendOpcode::kBindWindow};

// IBTA table 38.
inline constexpr OpcodeSet kOfDatagrams = {SendOpcode::kSend, SendOpcode::kSendImmediate};
inline constexpr OpcodeSet kOfUnreliable = kOfDatagrams | kWrites | kLocal;
inline constexpr OpcodeSet kOfReliable = kOfUnreliable | kWithResponse | OpcodeSet{SendOpcode::kSendInvalidate};
inline constexpr OpcodeSet kOfExtended = kOfReliable - OpcodeSet{SendOpcode::kFlush, SendOpcode::kAtomicWrite};

// The operations of a queue pair's transport.
constexpr OpcodeSet operations_of(QpType type) {
  switch (type) {
    case QpType::kRc:
      return kOfReliable;
    case QpType::kUc:
      return kOfUnreliable;
    case QpType::kUd:
      return kOfDatagrams;
    case QpType::kRawPacket:
      return {SendOpcode::kSend};
    case QpType::kXrcSend:
      return kOfExtended;
    case QpType::kXrcReceive:
      break;
  }
  return {};
}

constexpr bool wants_response(SendOpcode opcode) {
  return kWithResponse.has(opcode);
}
constexpr bool is_local(SendOpcode opcode) {
  return kLocal.has(opcode);
}
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

struct SendEntry {
  SendRequest request;  // its segments point into the queue
  uint64_t length = 0;  // bytes of the message
  const std::byte* inline_bytes = nullptr;
  uint64_t placed = 0;  // bytes that the sink has copied; such an entry is not started

  bool quiet = false;  // a plain Send that has been sent, and ends without a completion

  // Set when it is started.
  bool started = false;
  bool failed = false;
  CompletionStatus status = CompletionStatus::kSuccess;  // with failed
  uint32_t first_psn = 0;
  uint32_t packets = 0;   // PSNs that it takes; 0 for a local request
  uint32_t received = 0;  // packets of the response that have come
  uint32_t chunk = 0;     // Read: packets of the response that one request asks for
};

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
  // The same for a request that check() has accepted, and the bytes of its message.
  SendEntry& push(const SendRequest& request, uint64_t length) {
    assert(tail_ - head_ < depth_);
    // Made in its place: an assignment would copy it from the stack.
    SendEntry& entry = *new (&entries_[tail_ & mask_]) SendEntry{.request = request, .length = length};
    keep(entry, request.segments, goes_inline(request));
    return entry;
  }
  // The same two functions for a plain Send that fits into a packet.
  bool takes(const PlainSend& request, uint64_t length) const {
    if (tail_ - head_ >= depth_) return false;
    return (request.flags & kInline) != 0 ? length <= max_inline_ : request.segments.size() <= max_segments_;
  }
  SendEntry& push(const PlainSend& request, uint64_t length) {
    assert(takes(request, length));
    // The other fields keep their values: nothing reads them for a plain Send, or the caller sets them.
    SendEntry& entry = entries_[tail_ & mask_];
    entry.request.id = request.id;
    entry.request.opcode = SendOpcode::kSend;
    entry.request.flags = request.flags;
    entry.request.mark = 0;
    entry.length = length;
    entry.inline_bytes = nullptr;
    entry.failed = false;
    keep(entry, request.segments, (request.flags & kInline) != 0);
    return entry;
  }
  void pop(uint64_t count = 1) {
    assert(count <= tail_ - head_);
    head_ += count;
  }
  // The number of quiet requests at the head. Each has one packet, so their PSNs follow each other.
  uint64_t quiet() {
    if (quiet_end_ < head_) quiet_end_ = head_;
    while (quiet_end_ < tail_ && entries_[quiet_end_ & mask_].quiet) quiet_end_++;
    assert(quiet_end_ <= tail_);
    return quiet_end_ - head_;
  }
  // The request fails: it will have a completion.
  void fail(SendEntry& entry, CompletionStatus status) {
    assert(!empty() && !entry.failed && status != CompletionStatus::kSuccess);
    entry.failed = true;
    entry.status = status;
    entry.quiet = false;
    quiet_end_ = head_;
  }
  void clear() { head_ = tail_ = quiet_end_ = 0; }
  void assert_consistent() const {
    assert(head_ <= tail_ && tail_ - head_ <= depth_);
    assert(depth_ <= mask_ + 1 && quiet_end_ <= tail_);
  }

 private:
  // An atomic, Atomic Write or Flush.
  void push_with_result(const SendRequest& request, uint64_t length);
  // Copies the segments or the inline bytes of the new entry.
  void keep(SendEntry& entry, std::span<const Segment> segments, bool is_inline) {
    const size_t slot = tail_++ & mask_;
    if (is_inline) {
      assert(length_of(segments) <= max_inline_);
      std::byte* to = &inline_bytes_[slot * max_inline_];
      entry.inline_bytes = to;
      copy_bytes(segments, to);
      entry.request.segments = {};
    } else {
      assert(segments.size() <= max_segments_);
      Segment* to = &segments_[slot * max_segments_];
      copy_segments(segments, to);
      entry.request.segments = {to, segments.size()};
    }
  }

  OpcodeSet operations_ = kOfReliable;
  uint64_t most_posted_ = 0;  // bytes of a message
  uint32_t depth_ = 0;
  uint32_t mask_ = 0;  // for the place of a number: there is room for a power of two
  uint32_t max_segments_ = 0;
  uint32_t max_inline_ = 0;
  std::unique_ptr<SendEntry[]> entries_;
  std::unique_ptr<Segment[]> segments_;
  std::unique_ptr<std::byte[]> inline_bytes_;
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
  uint64_t quiet_end_ = 0;  // the requests from head_ to here are quiet
};

CompletionOpcode completion_opcode(SendOpcode opcode);

}  // namespace dapple::roce
