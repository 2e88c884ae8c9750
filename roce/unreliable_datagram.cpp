// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <span>

#include "roce/core/data_packet.hpp"
#include "roce/packet/psn.hpp"
#include "roce/transports.hpp"

namespace dapple::roce {
namespace {

// IBTA 10.2.5: with its highest bit set the request's Q_Key yields to the queue pair's own.
constexpr uint32_t kControlledQkey = 0x80000000;

}  // namespace

void UnreliableDatagram::address(const SendEntry& entry, DataPacket& packet) const {
  const SendEntry::Datagram& datagram = entry.datagram();
  packet.transport = Transport::kUd;
  packet.to = &datagram.address;
  packet.destination_qpn = datagram.qpn;
  packet.deth = {(datagram.qkey & kControlledQkey) ? values.qkey : datagram.qkey, config.qpn};
}

[[gnu::cold]] DroppedMessage UnreliableDatagram::reason_to_drop(const Packet& packet) const {
  using Reason = DroppedMessage::Reason;
  const bool is_datagram = packet.info->transport == Transport::kUd;
  DroppedMessage dropped = {.source_qpn = is_datagram ? packet.headers.deth.source_qpn : 0};
  if (state() < QpState::kRtr || state() > QpState::kSqe) {
    dropped.reason = Reason::kState;
  } else if (!is_datagram) {
    dropped.reason = Reason::kOther;
  } else if (packet.headers.deth.qkey != values.qkey) {
    dropped.reason = Reason::kQkey;
    dropped.found = packet.headers.deth.qkey;
    dropped.wanted = values.qkey;
  } else if (packet.payload.size() > mtu()) {
    dropped.reason = Reason::kTooLong;
    dropped.found = packet.payload.size();
    dropped.wanted = mtu();
  } else {
    dropped.reason = has_receive ? Reason::kSmallReceive : Reason::kNoReceive;
    dropped.found = packet.payload.size() + kGrhSize;
    dropped.wanted = has_receive ? receive_room : 0;
  }
  return dropped;
}

void UnreliableDatagram::receive(Now, const Packet& packet) {
  const bool is_ready = state() >= QpState::kRtr && state() <= QpState::kSqe;
  // A datagram that does not fit is only its sender's error, so it must not stop the receiver.
  if (!is_ready || packet.info->transport != Transport::kUd || packet.headers.deth.qkey != values.qkey ||
      packet.payload.size() > mtu() || !take_receive() || packet.payload.size() + kGrhSize > receive_room) {
    return drop(reason_to_drop(packet));
  }
  const std::span<const Segment> segments(receive_request.segments, receive_request.segment_count);
  const std::byte no_grh[kGrhSize] = {};
  const std::byte* grh = packet.grh.size() == kGrhSize ? packet.grh.data() : no_grh;
  Fault fault = memory.scatter(receiver, segments, 0, grh, kGrhSize);
  if (fault == Fault::kNone && !packet.payload.empty()) {
    fault = memory.scatter(receiver, segments, kGrhSize, packet.payload.data(), packet.payload.size());
  }
  if (fault != Fault::kNone) {
    finish_receive(CompletionStatus::kLocalProtection);
    return enter_error();
  }
  received = kGrhSize + packet.payload.size();
  Completion completion;
  completion.flags = kWithGrh;
  completion.solicited = packet.headers.solicited;
  completion.source_qpn = packet.headers.deth.source_qpn;
  // IPv4's header is in the second half.
  if (grh != no_grh) completion.ip_version = std::to_integer<uint8_t>(grh[0]) >> 4 == 6 ? 6 : 4;
  if (packet.info->has(kHasImmediate)) {
    completion.flags |= kWithImmediate;
    completion.immediate_or_rkey = packet.headers.immediate;
  }
  finish_receive(CompletionStatus::kSuccess, completion);
}

}  // namespace dapple::roce
