// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_queue_pair.hpp"

#include <utility>

#include "roce/packet/psn.hpp"

namespace dapple::soft {

TagQueuePair::TagQueuePair(std::unique_ptr<roce::QueuePair> engine, TagReceives& receives, Rendezvous& rendezvous,
                           bool reads, uint64_t max_message)
    : QueuePairLayer(std::move(engine)),
      receives_(receives),
      rendezvous_(rendezvous),
      reads_(reads),
      max_message_(max_message) {
  receives_.limited_by(*this);
}

bool TagQueuePair::modify(const roce::QpAttributes& attributes, uint32_t mask) {
  if (!QueuePairLayer::modify(attributes, mask)) return false;
  if (state() == roce::QpState::kReset) {
    receives_.reset();
    rendezvous_.reset();
  }
  return true;
}

void TagQueuePair::receive(roce::Now now, const roce::Packet& packet) {
  if (!receives_.look_at(packet) && packet.headers.psn == engine().attributes().receive_psn) {
    // As if this packet were lost, and the next one were here: the peer sends it again with its bytes.
    roce::Packet next = packet;
    next.headers.psn = roce::psn_add(packet.headers.psn, 1);
    QueuePairLayer::receive(now, next);
  } else {
    QueuePairLayer::receive(now, packet);
  }
  receives_.looked();
  if (!rendezvous_.has_begun()) return;
  rendezvous_.post([this](const roce::SendRequest& request) { return QueuePairLayer::post_send(request); });
}

roce::PostError TagQueuePair::post_send(const roce::SendRequest& request) {
  return reads_ ? roce::PostError::kFull : QueuePairLayer::post_send(request);
}

roce::PostError TagQueuePair::check_send(const roce::SendRequest& request, uint32_t ahead) const {
  return reads_ ? roce::PostError::kFull : QueuePairLayer::check_send(request, ahead);
}

// The device's own are no requests of the program.
uint64_t TagQueuePair::outstanding_sends() const {
  return reads_ ? 0 : QueuePairLayer::outstanding_sends();
}

std::optional<roce::SendRequest> TagQueuePair::oldest_send() const {
  return reads_ ? std::nullopt : QueuePairLayer::oldest_send();
}

// Before RTS the queue pair sends no requests.
uint64_t TagQueuePair::most_to_read() const {
  const bool may_send = state() == roce::QpState::kRts;
  return reads_ && may_send && engine().attributes().max_rd_atomic != 0 ? max_message_ : 0;
}

}  // namespace dapple::soft
