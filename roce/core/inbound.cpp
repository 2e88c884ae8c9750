// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/core/inbound.hpp"

#include <cassert>

#include "roce/packet/packet.hpp"

namespace dapple::roce {
namespace {

uint64_t size_of(const Packet& packet) {
  return packet.loan != nullptr ? packet.loan->length() : packet.payload.size();
}

}  // namespace

// Checks the packet as the packets that it stands for would be checked. Only Sends have loans.
[[gnu::noinline]] InboundError Inbound::check_loan(const Packet& packet) const {
  const Loan& loan = *packet.loan;
  const uint32_t mtu = core_.mtu();
  const bool is_valid = !packet.info->has(kIsWrite) && packet.payload.empty() && loan.length() > 0 &&
                        loan.packets() == packets_of(loan.length(), mtu) &&
                        (packet.info->has(kEnds) || loan.length() % mtu == 0);
  return is_valid ? InboundError::kNone : InboundError::kInvalidRequest;
}

// IBTA tables 39 and 40 and 9.7.4.1: place, size and rights of the packet, and its receive, before anything is changed.
[[gnu::always_inline]] inline InboundError Inbound::check(const Packet& packet) {
  const OpcodeInfo info = *packet.info;
  const bool starts = info.has(kStarts);
  const bool ends = info.has(kEnds);
  const Message kind = info.has(kIsWrite) ? Message::kWrite : Message::kSend;
  const uint64_t size = size_of(packet);
  const Reth& reth = packet.headers.reth;

  // IBTA 9.7.4.1.4: the opcode follows from the one before it.
  if (starts ? in_message() : message_ != kind) return InboundError::kInvalidRequest;
  if (kind == Message::kWrite && !(core_.values.access & kRemoteWrite)) {
    core_.events.refused(kRemoteWrite);
    return InboundError::kInvalidRequest;
  }
  // IBTA 9.7.4.1.6: all packets but the last are full, and one that ends a message of several holds something.
  if (packet.loan != nullptr) {
    if (const InboundError error = check_loan(packet); error != InboundError::kNone) return error;
  } else if (ends ? size > core_.mtu() || (!starts && size == 0) : size != core_.mtu()) {
    return InboundError::kInvalidRequest;
  }

  if (kind == Message::kWrite) {
    const uint64_t left = starts ? reth.length : left_;
    if (ends ? size != left : size >= left) return InboundError::kInvalidRequest;
  }
  const bool takes_receive = kind == Message::kSend ? starts : ends && info.has(kHasImmediate);
  if (takes_receive && !core_.take_receive()) return InboundError::kNoReceive;
  if (kind == Message::kSend) {
    assert(core_.has_receive);
    if (size > core_.receive_room - (starts ? 0 : core_.received)) return InboundError::kTooLong;
  } else if (starts && reth.length > 0) {
    const RemoteRange range = {reth.rkey, reth.address, reth.length};
    const Fault fault = core_.memory.check_remote(core_.self(), range, kRemoteWrite);
    if (fault != Fault::kNone) return deny(fault, range);
  }
  return InboundError::kNone;
}

[[gnu::cold]] InboundError Inbound::deny(Fault fault, const RemoteRange& range) {
  if (fault == Fault::kLater) return InboundError::kLater;
  core_.events.denied(range, kRemoteWrite);
  return InboundError::kRemoteAccess;
}

[[gnu::noinline]] InboundError Inbound::fetch(const Packet& packet) {
  assert(core_.has_receive);
  const std::span<const Segment> segments(core_.receive_request.segments, core_.receive_request.segment_count);
  const uint64_t offset = packet.info->has(kStarts) ? 0 : core_.received;
  switch (core_.memory.scatter_loan(core_.receiver, segments, offset, *packet.loan)) {
    case Fault::kNone:
      return InboundError::kNone;
    case Fault::kFailed:
      return InboundError::kLost;
    default:
      return InboundError::kLocalAccess;
  }
}

[[gnu::always_inline]] inline InboundError Inbound::place(const Packet& packet) {
  const size_t size = packet.payload.size();
  assert(in_message());
  if (message_ == Message::kSend) {
    assert(core_.has_receive && size <= core_.receive_room - core_.received);
    const std::span<const Segment> segments(core_.receive_request.segments, core_.receive_request.segment_count);
    const Fault fault = core_.memory.scatter(core_.receiver, segments, core_.received, packet.payload.data(), size);
    if (fault != Fault::kNone) return fault == Fault::kLater ? InboundError::kLater : InboundError::kLocalAccess;
    core_.received += size;
    return InboundError::kNone;
  }
  assert(size <= left_ && left_ <= total_);
  const RemoteRange range = {rkey_, address_, size};
  const Fault fault = core_.memory.write(core_.self(), range, packet.payload.data());
  if (fault != Fault::kNone) return deny(fault, range);
  address_ += size;
  left_ -= size;
  return InboundError::kNone;
}

[[gnu::always_inline]] inline InboundError Inbound::end(const Packet& packet) {
  const OpcodeInfo& info = *packet.info;
  const Message kind = message_;
  assert(kind == Message::kSend || (kind == Message::kWrite && left_ == 0));
  message_ = Message::kNone;
  Completion completion;
  completion.solicited = packet.headers.solicited;
  if (info.has(kHasImmediate)) {
    completion.flags |= kWithImmediate;
    completion.immediate_or_rkey = packet.headers.immediate;
  }
  if (info.has(kHasIeth)) {
    const uint32_t rkey = packet.headers.invalidated_rkey;
    const Fault fault = core_.memory.invalidate_remote(core_.self(), rkey);
    if (fault == Fault::kLater) {
      // The packet comes again, with the same bytes for the same place.
      message_ = info.has(kStarts) ? Message::kNone : kind;
      core_.received -= size_of(packet);
      return InboundError::kLater;
    }
    if (fault != Fault::kNone) {
      core_.events.cannot_invalidate(rkey);
      return InboundError::kInvalidation;
    }
    completion.flags |= kWithInvalidate;
    completion.immediate_or_rkey = rkey;
  }
  if (kind == Message::kWrite) {
    if (core_.observer != nullptr) [[unlikely]]
      core_.observer->executed(false, total_, false);
    if (!info.has(kHasImmediate)) return InboundError::kNone;
    completion.opcode = CompletionOpcode::kReceiveWriteImmediate;
    completion.byte_count = static_cast<uint32_t>(total_);
  }
  completion.source_qpn = core_.values.destination_qpn;
  const bool is_told = core_.finish_receive(CompletionStatus::kSuccess, completion);
  return is_told ? InboundError::kNone : InboundError::kLostCompletion;
}

[[gnu::always_inline]] inline InboundError Inbound::execute(const Packet& packet) {
  const OpcodeInfo info = *packet.info;
  if (packet.loan != nullptr) {
    // The bytes are fetched first: if that fails, packets bring them later, and nothing may have changed.
    if (const InboundError error = fetch(packet); error != InboundError::kNone) return error;
  }
  if (info.has(kStarts)) {
    message_ = info.has(kIsWrite) ? Message::kWrite : Message::kSend;
    if (message_ == Message::kSend) {
      core_.received = 0;
    } else {
      rkey_ = packet.headers.reth.rkey;
      address_ = packet.headers.reth.address;
      left_ = total_ = packet.headers.reth.length;
    }
  }
  if (packet.loan != nullptr) {
    core_.received += packet.loan->length();
  } else if (!packet.payload.empty()) {
    if (const InboundError error = place(packet); error != InboundError::kNone) {
      // The packet comes again, as a first one.
      if (error == InboundError::kLater && info.has(kStarts)) message_ = Message::kNone;
      return error;
    }
  }
  return info.has(kEnds) ? end(packet) : InboundError::kNone;
}

InboundError Inbound::receive(const Packet& packet) {
  const InboundError error = check(packet);
  return error == InboundError::kNone ? execute(packet) : error;
}

}  // namespace dapple::roce
