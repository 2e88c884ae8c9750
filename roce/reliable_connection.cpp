// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <cassert>

#include "roce/transports.hpp"

namespace dapple::roce {

bool ReliableConnection::prepare(QpState to, const QpAttributes& next) {
  if (to == QpState::kRtr) return responder_.prepare(next.max_dest_rd_atomic);
  if (to == QpState::kSqd && !responder_.make_room(next.max_dest_rd_atomic)) return false;
  return (to != QpState::kRts && to != QpState::kSqd) || requester_.make_room(next.max_rd_atomic);
}

void ReliableConnection::entered(QpState from) {
  switch (state()) {
    case QpState::kReset:
    case QpState::kError:
      requester_.stop();
      if (state() == QpState::kReset) responder_.stop();
      break;
    case QpState::kRtr:
      responder_.start();
      break;
    case QpState::kRts:
      if (from == QpState::kRtr) {
        requester_.start();
      } else {
        requester_.resume();
      }
      break;
    case QpState::kSqd:
      requester_.drain();
      break;
    default:
      break;
  }
}

void ReliableConnection::tell_progress(QpAttributes& now) const {
  const bool may_send = state() == QpState::kRts || state() == QpState::kSqd;
  if (state() == QpState::kRtr || may_send) now.receive_psn = responder_.expected_psn();
  if (may_send) now.send_psn = requester_.next_new_psn();
  now.draining = state() == QpState::kSqd && requester_.draining();
}

void ReliableConnection::receive(Now now, const Packet& packet) {
  const bool is_ready = state() == QpState::kRtr || state() == QpState::kRts || state() == QpState::kSqd;
  if (!is_ready || packet.info->transport != transport) {
    count.dropped_packets++;
    return;
  }
  if (packet.acknowledgement != nullptr && state() != QpState::kRtr) {
    requester_.take_acknowledgement(now, *packet.acknowledgement);
    if (state() == QpState::kError) return;
  }
  if (!packet.info->has(kResponse)) {
    responder_.receive(packet);
  } else if (state() != QpState::kRtr) {
    requester_.receive(now, packet);
  }
}

bool ReliableConnection::transmit(Now now, PacketSink& sink) {
  if (state() < QpState::kRtr) return false;
  // A host can send packets of one size and a shorter one with one call, so an acknowledgement follows the requests. It
  // waits for one turn at most.
  if (responder_.transmit_responses(sink)) return true;
  if (requests_filled_sink_ && responder_.transmit_acknowledgement(sink)) return true;
  const bool may_send = state() == QpState::kRts || state() == QpState::kSqd;
  requests_filled_sink_ = may_send && requester_.transmit(now, sink);
  // An error on the way stops the requester.
  assert(!requests_filled_sink_ || state() != QpState::kError);
  return requests_filled_sink_ || responder_.transmit_acknowledgement(sink);
}

Owes ReliableConnection::owes() const {
  return requester_.has_requests_to_send() ? Owes::kMore : responder_.owes();
}

}  // namespace dapple::roce
