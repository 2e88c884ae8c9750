// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/send_queue.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace dapple::roce {
namespace {

// IBTA 9.4.3 and 9.3.2.3: a message has at most 2^31 bytes.
constexpr uint64_t kMaxMessage = uint64_t{1} << 31;

bool serves(QpType type, SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::kSend:
    case SendOpcode::kSendImmediate:
      return true;
    case SendOpcode::kWrite:
    case SendOpcode::kWriteImmediate:
    case SendOpcode::kLocalInvalidate:
    case SendOpcode::kBindWindow:
      return type != QpType::kUd;
    // IBTA table 38: UC has no opcodes for these.
    case SendOpcode::kSendInvalidate:
    case SendOpcode::kRead:
    case SendOpcode::kCompareSwap:
    case SendOpcode::kFetchAdd:
    case SendOpcode::kFlush:
    case SendOpcode::kAtomicWrite:
      return type == QpType::kRc;
  }
  return false;
}

bool may_be_inline(SendOpcode opcode) {
  return opcode == SendOpcode::kSend || opcode == SendOpcode::kSendImmediate || opcode == SendOpcode::kSendInvalidate ||
         opcode == SendOpcode::kWrite || opcode == SendOpcode::kWriteImmediate;
}

bool is_atomic(SendOpcode opcode) {
  return opcode == SendOpcode::kCompareSwap || opcode == SendOpcode::kFetchAdd;
}

}  // namespace

bool wants_response(SendOpcode opcode) {
  return opcode == SendOpcode::kRead || is_atomic(opcode) || opcode == SendOpcode::kFlush ||
         opcode == SendOpcode::kAtomicWrite;
}

bool is_local(SendOpcode opcode) {
  return opcode == SendOpcode::kLocalInvalidate || opcode == SendOpcode::kBindWindow;
}

CompletionOpcode completion_opcode(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::kWrite:
    case SendOpcode::kWriteImmediate:
      return CompletionOpcode::kWrite;
    case SendOpcode::kSend:
    case SendOpcode::kSendImmediate:
    case SendOpcode::kSendInvalidate:
      return CompletionOpcode::kSend;
    case SendOpcode::kRead:
      return CompletionOpcode::kRead;
    case SendOpcode::kCompareSwap:
      return CompletionOpcode::kCompareSwap;
    case SendOpcode::kFetchAdd:
      return CompletionOpcode::kFetchAdd;
    case SendOpcode::kLocalInvalidate:
      return CompletionOpcode::kLocalInvalidate;
    case SendOpcode::kBindWindow:
      return CompletionOpcode::kBindWindow;
    case SendOpcode::kFlush:
      return CompletionOpcode::kFlush;
    case SendOpcode::kAtomicWrite:
      return CompletionOpcode::kAtomicWrite;
  }
  return CompletionOpcode::kSend;
}

bool SendQueue::create(const QpConfig& config) {
  depth_ = std::max<uint32_t>(config.send_depth, 1);
  max_segments_ = std::min(config.max_send_segments, kMaxSegments);
  max_inline_ = config.max_inline;
  const uint32_t room = std::bit_ceil(depth_);
  mask_ = room - 1;
  entries_.reset(new (std::nothrow) SendEntry[room]);
  segments_.reset(new (std::nothrow) Segment[size_t{room} * std::max<uint32_t>(max_segments_, 1)]);
  inline_bytes_.reset(new (std::nothrow) std::byte[size_t{room} * std::max<uint32_t>(max_inline_, 1)]);
  return entries_ != nullptr && segments_ != nullptr && inline_bytes_ != nullptr;
}

namespace {

bool goes_inline(const SendRequest& request) {
  return (request.flags & kInline) != 0 && may_be_inline(request.opcode);
}

}  // namespace

PostError SendQueue::check(const SendRequest& request, QpType type, uint32_t ahead) const {
  if (!serves(type, request.opcode)) return PostError::kOpcode;
  if (tail_ - head_ + ahead >= depth_) return PostError::kFull;
  const bool is_inline = goes_inline(request);
  // Inline bytes may come from more pieces than a gather list has room for.
  if (!is_inline && request.segments.size() > max_segments_) return PostError::kSegments;
  const uint64_t length = length_of(request.segments);
  if (is_inline ? length > max_inline_ : length > kMaxMessage) return PostError::kLength;
  // IBTA 9.4.5: an atomic's result has eight bytes.
  if (is_atomic(request.opcode) && length != 8) return PostError::kSegments;
  return PostError::kNone;
}

PostError SendQueue::push(const SendRequest& request, QpType type) {
  if (const PostError error = check(request, type, 0); error != PostError::kNone) return error;
  const bool is_inline = goes_inline(request);
  const size_t slot = tail_ & mask_;
  // Made in its place: an assignment would copy it from the stack.
  SendEntry& entry = *new (&entries_[slot]) SendEntry{.request = request};
  entry.length = length_of(request.segments);
  if (request.opcode == SendOpcode::kAtomicWrite) entry.length = 8;
  if (request.opcode == SendOpcode::kFlush) entry.length = request.flush_length;
  if (is_inline) {
    std::byte* to = &inline_bytes_[slot * std::max<uint32_t>(max_inline_, 1)];
    entry.inline_bytes = to;
    for (const Segment& segment : request.segments) {
      if (segment.length == 0) continue;
      memcpy(to, reinterpret_cast<const void*>(segment.address), segment.length);
      to += segment.length;
    }
    entry.request.segments = {};
  } else {
    Segment* to = &segments_[slot * std::max<uint32_t>(max_segments_, 1)];
    copy_segments(request.segments, to);
    entry.request.segments = {to, request.segments.size()};
  }
  tail_++;
  return PostError::kNone;
}

}  // namespace dapple::roce
