// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/send_queue/send_queue.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

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

SendEntry::Part part_of_sends(QpType type) {
  switch (type) {
    case QpType::kUd:
      return SendEntry::Part::kDatagram;
    case QpType::kXrcSend:
      return SendEntry::Part::kRemote;
    default:
      return SendEntry::Part::kBare;
  }
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

void SendQueue::Free::operator()(SendEntry* entries) const {
  if (from_ == nullptr) {
    delete[] entries;
  } else {
    from_->give(SendMemory::Part::kRequests, entries);
  }
}

void SendQueue::Free::operator()(Segment* segments) const {
  if (from_ == nullptr) {
    delete[] segments;
  } else {
    from_->give(SendMemory::Part::kSegments, segments);
  }
}

template <typename Element>
std::unique_ptr<Element[], SendQueue::Free> SendQueue::make(SendMemory* memory, SendMemory::Part part, size_t count) {
  static_assert(std::is_trivially_destructible_v<Element> && alignof(Element) <= SendMemory::kAlignment);
  if (memory == nullptr || count == 0) return std::unique_ptr<Element[], Free>(new (std::nothrow) Element[count]);
  auto* elements = static_cast<Element*>(memory->take(part, count * sizeof(Element)));
  if (elements != nullptr) std::uninitialized_default_construct_n(elements, count);
  return std::unique_ptr<Element[], Free>(elements, Free(memory));
}

bool SendQueue::create(const QpConfig& config) {
  assert(config.max_message >= 4096 && config.max_message <= uint64_t{1} << 31);
  operations_ = operations_for(config);
  most_posted_ = config.refuses_too_long ? config.max_message : UINT64_MAX;
  depth_ = config.send_depth;
  max_segments_ = std::min(config.max_send_segments, kMaxSegments);
  max_inline_ = config.max_inline;
  part_of_sends_ = part_of_sends(config.type);
  const uint32_t room = std::bit_ceil(std::max<uint32_t>(depth_, 1));
  mask_ = room - 1;
  place_size_ = std::max<size_t>(max_segments_, (size_t{max_inline_} + sizeof(Segment) - 1) / sizeof(Segment));
  entries_ = make<SendEntry>(config.send_memory, SendMemory::Part::kRequests, room);
  segments_ = make<Segment>(config.send_memory, SendMemory::Part::kSegments, room * place_size_);
  return entries_ != nullptr && segments_ != nullptr;
}

SendRequest SendQueue::request_of(const SendEntry& entry) const {
  SendRequest request;
  request.id = entry.id;
  request.opcode = entry.opcode;
  request.flags = entry.flags;
  request.mark = entry.mark;
  if (!wants_response(entry.opcode)) request.immediate_or_rkey = entry.immediate_or_rkey();
  switch (entry.part()) {
    case SendEntry::Part::kBare:
      break;
    case SendEntry::Part::kRemote: {
      const SendEntry::Remote& remote = entry.remote();
      request.remote_address = remote.address;
      request.rkey = remote.rkey;
      request.remote_srq = remote.srq;
      if (entry.opcode == SendOpcode::kFlush) {
        request.flush_length = entry.length;
        request.flush_type = static_cast<uint32_t>(remote.operand);
      } else if (entry.opcode == SendOpcode::kAtomicWrite) {
        request.atomic_write = remote.operand;
      } else {
        request.compare_or_add = remote.operand;
        request.swap = remote.swap;
      }
      break;
    }
    case SendEntry::Part::kDatagram:
      request.address = entry.datagram().address;
      request.remote_qpn = entry.datagram().qpn;
      request.remote_qkey = entry.datagram().qkey;
      break;
    case SendEntry::Part::kBind:
      request.bind = entry.bind();
      break;
  }
  request.segments = segments(entry);
  return request;
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

// With check() inside, which looks at the same things.
[[gnu::flatten]] PostError SendQueue::push(const SendRequest& request) {
  if (const PostError error = check(request, 0); error != PostError::kNone) return error;
  std::span<const Segment> segments = request.segments;
  uint64_t length = length_of(segments);
  SendEntry& entry = begin(request.id, request.opcode, request.flags);
  entry.mark = request.mark;
  switch (request.opcode) {
    case SendOpcode::kSend:
    case SendOpcode::kSendImmediate:
    case SendOpcode::kSendInvalidate:
      entry.set_immediate_or_rkey(request.immediate_or_rkey);
      keep_part_of_send(entry, request);
      break;
    case SendOpcode::kWrite:
    case SendOpcode::kWriteImmediate:
      entry.set_immediate_or_rkey(request.immediate_or_rkey);
      entry.set(SendEntry::Remote{request.remote_address, request.rkey, request.remote_srq});
      break;
    case SendOpcode::kRead:
      entry.set_received(0);
      entry.set(SendEntry::Remote{request.remote_address, request.rkey, request.remote_srq});
      break;
    case SendOpcode::kCompareSwap:
    case SendOpcode::kFetchAdd:
      // Its result has eight bytes. A longer list becomes shorter in its place.
      if (length != kAtomicSize) segments = first_bytes(segments, kAtomicSize, next_place());
      length = kAtomicSize;
      entry.set_received(0);
      entry.set(SendEntry::Remote{request.remote_address, request.rkey, request.remote_srq, request.compare_or_add,
                                  request.swap});
      break;
    case SendOpcode::kFlush:
      length = request.flush_length;
      entry.set_received(0);
      entry.set(SendEntry::Remote{request.remote_address, request.rkey, request.remote_srq, request.flush_type});
      break;
    case SendOpcode::kAtomicWrite:
      length = kAtomicSize;
      entry.set_received(0);
      entry.set(SendEntry::Remote{request.remote_address, request.rkey, request.remote_srq, request.atomic_write});
      break;
    case SendOpcode::kLocalInvalidate:
      entry.set_immediate_or_rkey(request.immediate_or_rkey);
      entry.set_bare();
      break;
    case SendOpcode::kBindWindow:
      entry.set_immediate_or_rkey(request.immediate_or_rkey);
      entry.set(request.bind);
      break;
  }
  entry.length = static_cast<uint32_t>(std::min<uint64_t>(length, UINT32_MAX));
  entry.packets = 0;
  entry.progress = SendEntry::Progress::kWaiting;
  keep(entry, segments, goes_inline(request));
  return PostError::kNone;
}

void SendQueue::keep_part_of_send(SendEntry& entry, const SendRequest& request) const {
  switch (part_of_sends_) {
    case SendEntry::Part::kDatagram:
      return entry.set(SendEntry::Datagram{request.address, request.remote_qpn, request.remote_qkey});
    case SendEntry::Part::kRemote:
      return entry.set(SendEntry::Remote{.srq = request.remote_srq});
    default:
      return entry.set_bare();
  }
}

}  // namespace dapple::roce
