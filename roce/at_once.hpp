// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The short way of a reliable connection's plain Sends, from post to packet and from packet to completion. These
// functions are templates of the ports' types: a host whose ports are final classes names them. Then the calls of these
// ports are not virtual, and the compiler can inline them.
#pragma once

#include <cassert>

#include "roce/packet/packet.hpp"
#include "roce/packet/psn.hpp"
#include "roce/transports.hpp"

namespace dapple::roce {

// A Send of one packet, before it is in the send queue. False if the sink is full, or the bytes cannot be read.
template <typename Sink, typename MemoryType>
inline bool emit_plain_send(const Core& core, const PlainSend& request, uint64_t length, uint32_t psn, bool ack_request,
                            Sink& sink, MemoryType& memory) {
  Bth bth;
  bth.opcode = opcode_of(Transport::kRc, Operation::kSendOnly);
  bth.solicited = (request.flags & kSolicited) != 0;
  bth.pad = pad_of(length);
  bth.destination_qpn = core.values.destination_qpn;
  bth.ack_request = ack_request;
  bth.psn = psn;
  std::byte* room = sink.reserve(kBthSize + length + bth.pad);
  if (room == nullptr) return false;
  write_bth(bth, room);
  write_pad(bth.pad, room + kBthSize + length);
  if ((request.flags & kInline) != 0) {
    copy_bytes(request.segments, room + kBthSize);
  } else if (length > 0 && memory.gather(core.self(), request.segments, 0, room + kBthSize, length) != Fault::kNone) {
    return false;
  }
  sink.commit(nullptr);
  return true;
}

template <typename Sink, typename MemoryType>
inline bool Requester::send_at_once(Now now, const PlainSend& request, Sink& sink, MemoryType& memory) {
  const uint64_t length = length_of(request.segments);
  if (length > core_.mtu() || !core_.sends.takes(request, length)) return false;
  const bool asks = wants_acknowledgement(request.flags);
  if (!emit_plain_send(core_, request, length, next_psn_, asks, sink, memory)) return false;
  SendEntry& entry = core_.sends.push(request, length);
  entry.progress = core_.ends_quietly(request.flags) ? SendEntry::Progress::kQuiet : SendEntry::Progress::kStarted;
  entry.first_psn = next_psn_;
  entry.packets = 1;
  next_psn_ = highest_psn_ = psn_add(next_psn_, 1);
  after_others_ = ++cursor_;
  unasked_ = asks ? 0 : unasked_ + 1;
  message_ended_ = false;
  if (!timer_.runs()) set_timer(now);
  assert_consistent();
  return true;
}

template <typename Sink, typename MemoryType>
inline bool ReliableConnection::send_at_once(Now now, const PlainSend& request, Sink& sink, MemoryType& own_memory) {
  assert(static_cast<Memory*>(&own_memory) == &memory);
  if (state() != QpState::kRts || requests_filled_sink_ || !requester_.may_send_at_once(sink.may_lose_packets()))
    return false;
  const Owes owed = responder_.owes();
  if (owed == Owes::kMore) return false;
  const Acknowledgement acknowledgement = responder_.acknowledgement();
  if (owed != Owes::kNothing && !sink.take_along(acknowledgement)) return false;
  if (!requester_.send_at_once(now, request, sink, own_memory)) return false;
  if (owed != Owes::kNothing) responder_.was_acknowledged();
  return true;
}

template <typename MemoryType, typename Receives, typename Completions>
inline bool Responder::receive_at_once(const PlainPacket& packet, MemoryType& memory, Receives& receives,
                                       Completions& completions) {
  const size_t size = packet.payload.size();
  if (!established_ && core_.state() == QpState::kRtr) return false;
  if (packet.psn != expected_psn_ || reply_ == Reply::kNak || inbound_.in_message() || size > core_.mtu()) return false;
  if (!core_.has_receive && !core_.take_next_receive(receives)) return false;
  if (size > core_.receive_room) return false;
  const std::span<const Segment> segments(core_.receive_request.segments, core_.receive_request.segment_count);
  if (size > 0 && memory.scatter(core_.receiver, segments, 0, packet.payload.data(), size) != Fault::kNone)
    return false;
  core_.received = size;
  Completion completion;
  completion.solicited = packet.solicited;
  completion.source_qpn = core_.values.destination_qpn;
  const bool is_told = completions.complete(core_.end_receive(CompletionStatus::kSuccess, completion));
  gap_ = false;
  if (is_told) [[likely]]
    executed(1, true, packet.ack_request);
  else
    lose_completion();
  assert_consistent();
  return true;
}

template <typename MemoryType, typename Receives, typename Completions>
inline bool ReliableConnection::receive_at_once(Now now, const PlainPacket& packet, MemoryType& own_memory,
                                                Receives& own_receives, Completions& own_completions) {
  assert(static_cast<Memory*>(&own_memory) == &memory && static_cast<ReceiveSource*>(&own_receives) == &receives &&
         static_cast<CompletionSink*>(&own_completions) == &receive_completions);
  if (state() != QpState::kRts) {
    return state() == QpState::kRtr && responder_.receive_at_once(packet, own_memory, own_receives, own_completions);
  }
  if (packet.acknowledgement != nullptr) {
    requester_.take_acknowledgement(now, *packet.acknowledgement);
    if (state() != QpState::kRts) return true;
  }
  return responder_.receive_at_once(packet, own_memory, own_receives, own_completions);
}

}  // namespace dapple::roce
