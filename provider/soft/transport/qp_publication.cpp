// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/transport/qp_publication.hpp"

#include <string.h>

#include <utility>

namespace dapple::soft {

void publish_qp(Qp& qp, Publication& publication) {
  const BiasedLock lock(qp.mutex);
  if (qp.transport.ring == nullptr || qp.init.qp_type != IBV_QPT_RC || qp.transport.published != 0) return;
  // The peer copies without a word to this end, which could count nothing.
  if (qp.counters != nullptr && qp.counters->counts_peer()) return;
  const roce::QpState state = qp.engine->state();
  if (state != roce::QpState::kRtr && state != roce::QpState::kRts && state != roce::QpState::kSqd) return;
  const roce::QpAttributes now = qp.engine->attributes();
  QpDescription shown;
  shown.qpn = qp.qpn;
  shown.peer_qpn = now.destination_qpn;
  shown.domain = qp.pd->number;
  shown.access = now.max_dest_rd_atomic == 0 ? now.access & ~uint32_t{roce::kRemoteRead} : now.access;
  memcpy(shown.own_address, qp.transport.path.source, sizeof shown.own_address);
  memcpy(shown.peer_address, qp.transport.path.destination, sizeof shown.peer_address);
  qp.transport.published = publication.publish(shown);
  qp.events.shown_as(qp.mutex, &publication, qp.transport.published);
}

void revoke_qp(Qp& qp, Publication& publication) {
  uint32_t ticket = 0;
  {
    const BiasedLock lock(qp.mutex);
    ticket = std::exchange(qp.transport.published, 0);
    qp.events.shown_as(qp.mutex, nullptr, 0);
  }
  publication.revoke_qp(ticket);
}

}  // namespace dapple::soft
