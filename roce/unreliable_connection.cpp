// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <cassert>

#include "roce/core/data_packet.hpp"
#include "roce/packet/psn.hpp"
#include "roce/transports.hpp"

namespace dapple::roce {

void Unreliable::entered(QpState from) {
  // Only an entered queue pair with requests has sent a part of a message.
  assert(packet_ == 0 || from == QpState::kRts || from == QpState::kSqd);
  if (state() == QpState::kRts && from == QpState::kRtr) next_psn_ = values.send_psn;
  if (state() != QpState::kSqd && state() != QpState::kRts) packet_ = 0;
  // IBTA 10.3.1.5: the message in progress is finished first, by transmit(); between messages the queue is drained at
  // once.
  if (state() == QpState::kSqd && packet_ == 0 && values.notify_drained) raise(QpEvent::kSendQueueDrained);
}

void Unreliable::tell_progress(QpAttributes& now) const {
  if (state() >= QpState::kRts && state() <= QpState::kSqe) now.send_psn = next_psn_;
  now.draining = state() == QpState::kSqd && packet_ != 0;
}

Core::SendStep Unreliable::step_local(const SendEntry& entry) {
  const bool is_invalidate = entry.opcode == SendOpcode::kLocalInvalidate;
  const Fault fault = is_invalidate ? memory.invalidate_local(self(), entry.immediate_or_rkey())
                                    : memory.bind_window(self(), entry.bind());
  if (fault == Fault::kNone) {
    finish_send(CompletionStatus::kSuccess);
    return SendStep::kDone;
  }
  finish_send(is_invalidate ? CompletionStatus::kLocalQpOperation : CompletionStatus::kWindowBind);
  return SendStep::kFailed;
}

Core::SendStep Unreliable::send_packet(SendEntry& entry, PacketSink& sink) {
  if (!entry.is_started()) {
    // IBTA 11.6.2: an operation that the transport lacks, and C10-10: an address handle of another protection domain.
    const bool is_foreign = entry.part() == SendEntry::Part::kDatagram && entry.datagram().address.is_foreign;
    if (!operations_of(config.type).has(entry.opcode) || is_foreign) {
      finish_send(CompletionStatus::kLocalQpOperation);
      return SendStep::kFailed;
    }
    if (is_local(entry.opcode)) return step_local(entry);
    // IBTA 9.8.2.2.4: a datagram is one packet.
    if (entry.length > (config.type == QpType::kUd ? mtu() : config.max_message)) {
      finish_send(CompletionStatus::kLocalLength);
      return SendStep::kFailed;
    }
    entry.progress = SendEntry::Progress::kStarted;
    entry.first_psn = next_psn_;
    entry.packets = packets_of(entry.length, mtu());
    next_psn_ = psn_add(next_psn_, entry.packets);
  }
  // A datagram is one packet.
  assert(config.type == QpType::kUc || (packet_ == 0 && entry.packets == 1));
  DataPacket packet;
  packet.number = packet_;
  address(entry, packet);
  switch (emit_data(*this, entry, packet, sink)) {
    case Emitted::kFull:
      return SendStep::kFull;
    case Emitted::kFault:
      packet_ = 0;
      finish_send(CompletionStatus::kLocalProtection);
      return SendStep::kFailed;
    case Emitted::kSent:
      break;
  }
  assert(packet_ < entry.packets);
  if (++packet_ < entry.packets) return SendStep::kDone;
  packet_ = 0;
  finish_send(CompletionStatus::kSuccess);
  return SendStep::kDone;
}

Core::SendStep Unreliable::step(PacketSink& sink) {
  if (state() == QpState::kSqd && packet_ == 0) return SendStep::kAtRest;
  const SendStep result = send_packet(sends.front(), sink);
  const bool ends_message = result == SendStep::kDone && packet_ == 0;
  if (ends_message && state() == QpState::kSqd && values.notify_drained) raise(QpEvent::kSendQueueDrained);
  return result;
}

bool Unreliable::transmit(Now, PacketSink& sink) {
  if (state() != QpState::kRts && state() != QpState::kSqd) return false;
  return send_by([&] { return step(sink); });
}

void UnreliableConnection::address(const SendEntry&, DataPacket& packet) const {
  packet.transport = Transport::kUc;
  packet.destination_qpn = values.destination_qpn;
}

void UnreliableConnection::entered(QpState from) {
  Unreliable::entered(from);
  if (state() == QpState::kRtr) {
    expected_psn_ = values.receive_psn;
    established_ = false;
  }
  if (state() == QpState::kReset || state() == QpState::kRtr || state() == QpState::kError) inbound_.reset();
}

void UnreliableConnection::tell_progress(QpAttributes& now) const {
  Unreliable::tell_progress(now);
  if (state() >= QpState::kRtr && state() <= QpState::kSqe) now.receive_psn = expected_psn_;
}

// The receive in progress serves the next message.
[[gnu::cold]] void UnreliableConnection::drop_message(InboundError error, const Packet& packet) {
  using Reason = DroppedMessage::Reason;
  const size_t size = packet.payload.size();
  const bool has_other_mtu = packet.info->has(kStarts) && (packet.info->has(kEnds) ? size > mtu() : size != mtu());
  DroppedMessage dropped = {.reason = error == InboundError::kNoReceive ? Reason::kNoReceive
                                      : error == InboundError::kTooLong ? Reason::kSmallReceive
                                      : error == InboundError::kLost    ? Reason::kLost
                                      : has_other_mtu                   ? Reason::kMtu
                                                                        : Reason::kOther};
  if (dropped.reason == Reason::kSmallReceive) dropped.wanted = receive_room;
  if (dropped.reason == Reason::kMtu) {
    dropped.found = size;
    dropped.wanted = mtu();
  }
  inbound_.reset();
  drop(dropped);
}

void UnreliableConnection::receive(Now, const Packet& packet) {
  const bool is_ready = state() >= QpState::kRtr && state() <= QpState::kSqe;
  if (!is_ready || packet.info->transport != Transport::kUc) {
    return drop({.reason = is_ready ? DroppedMessage::Reason::kOther : DroppedMessage::Reason::kState});
  }
  if (!established_ && state() == QpState::kRtr) {
    established_ = true;
    raise(QpEvent::kEstablished);
  }
  // IBTA 9.8.2.2.2: after a loss the rest of the message is dropped; the next one begins anew.
  const bool starts = packet.info->has(kStarts);
  if (starts) {
    inbound_.reset();
  } else if (packet.headers.psn != expected_psn_) {
    return drop_message(InboundError::kLost, packet);
  }
  expected_psn_ = psn_add(packet.headers.psn, 1);
  switch (const InboundError error = inbound_.receive(packet)) {
    case InboundError::kNone:
      return;
    case InboundError::kLocalAccess:
      // IBTA 9.9.3.1, class E: neither the receive nor its queue can be used any more.
      finish_receive(CompletionStatus::kLocalProtection);
      return enter_error();
    default:
      return drop_message(error, packet);
  }
}

}  // namespace dapple::roce
