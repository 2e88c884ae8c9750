// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/send_queue.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>

namespace dapple::roce {
namespace {

constexpr OpcodeSet kAtomics = {SendOpcode::kCompareSwap, SendOpcode::kFetchAdd};

constexpr uint64_t kAtomicSize = 8;

// Without those that the device lacks. The other operations are posted on each transport, except for XRC.
OpcodeSet operations_for(const QpConfig& config) {
  const bool is_extended = config.type == QpType::kXrcSend || config.type == QpType::kXrcReceive;
  OpcodeSet operations = is_extended ? operations_of(config.type) : kOfReliable;
  if (!config.has_atomics) operations = operations - kAtomics;
  if (!config.has_flush) operations = operations - OpcodeSet{SendOpcode::kFlush, SendOpcode::kAtomicWrite};
  return operations;
}

}  // namespace

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
  assert(config.max_message >= 4096 && config.max_message <= uint64_t{1} << 31);
  operations_ = operations_for(config);
  most_posted_ = config.refuses_too_long ? config.max_message : UINT64_MAX;
  depth_ = config.send_depth;
  max_segments_ = std::min(config.max_send_segments, kMaxSegments);
  max_inline_ = config.max_inline;
  const uint32_t room = std::bit_ceil(std::max<uint32_t>(depth_, 1));
  mask_ = room - 1;
  entries_.reset(new (std::nothrow) SendEntry[room]);
  segments_.reset(new (std::nothrow) Segment[size_t{room} * max_segments_]);
  inline_bytes_.reset(new (std::nothrow) std::byte[size_t{room} * max_inline_]);
  return entries_ != nullptr && segments_ != nullptr && inline_bytes_ != nullptr;
}

PostError SendQueue::check(const SendRequest& request, uint32_t ahead) const {
  if (!operations_.has(request.opcode)) return PostError::kOpcode;
  if (tail_ - head_ + ahead >= depth_) return PostError::kFull;
  const bool is_inline = goes_inline(request);
  // Inline bytes may come from more pieces than a gather list has room for.
  if (!is_inline && request.segments.size() > max_segments_) return PostError::kSegments;
  const uint64_t length = length_of(request.segments);
  if (is_inline ? length > max_inline_ : length > most_posted_) return PostError::kLength;
  // IBTA 9.4.5: an atomic's result has eight bytes. A list may hold more; they stay as they are.
  if (kAtomics.has(request.opcode) && length < kAtomicSize) return PostError::kSegments;
  return PostError::kNone;
}

PostError SendQueue::push(const SendRequest& request) {
  if (const PostError error = check(request, 0); error != PostError::kNone) return error;
  const uint64_t length = length_of(request.segments);
  if (wants_response(request.opcode) && request.opcode != SendOpcode::kRead) {
    push_with_result(request, length);
  } else {
    push(request, length);
  }
  return PostError::kNone;
}

void SendQueue::push_with_result(const SendRequest& request, uint64_t length) {
  if (request.opcode == SendOpcode::kFlush) {
    push(request, request.flush_length);
  } else if (kAtomics.has(request.opcode) && length != kAtomicSize) {
    Segment result[kMaxSegments];
    SendRequest atomic = request;
    atomic.segments = first_bytes(request.segments, kAtomicSize, result);
    push(atomic, kAtomicSize);
  } else {
    push(request, kAtomicSize);
  }
}

}  // namespace dapple::roce
