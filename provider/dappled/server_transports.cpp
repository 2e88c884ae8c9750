// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The server's answers about the transports of programs' connections.
#include "provider/dappled/server.hpp"

namespace dapple::dappled {

void Server::answer_transports(Connection& connection, const soft::TransportsRequest& request, soft::Descriptors&) {
  const Connection* owner = owner_from(request.slot);
  const soft::SlotPages* pages = owner == nullptr ? nullptr : slots_.counters().at(owner->slot);
  soft::TransportsReply message;
  if (pages == nullptr) return reply(connection, message);
  const soft::SlotTransports& transports = pages->transports;
  message.slot = owner->slot;
  message.process = static_cast<uint32_t>(owner->process);
  message.no_rings = transports.no_rings.load(std::memory_order_relaxed);
  message.ring_bytes = transports.ring_bytes.value();
  message.most_ring_bytes = transports.most_ring_bytes.value();
  message.unlisted_queue_pairs = transports.unlisted_queue_pairs.value();
  const uint32_t end = soft::end_of_rows(transports);
  for (uint32_t i = owner->slot == request.slot ? request.first : 0; i < end; i++) {
    if (message.count == soft::TransportsReply::kRows) {
      message.next = i;
      break;
    }
    if (transports.rows[i].read(message.rows[message.count])) message.count++;
  }
  reply(connection, message);
}

}  // namespace dapple::dappled
