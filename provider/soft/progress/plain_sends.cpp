// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/plain_sends.hpp"

#include "provider/soft/links/ring_post.hpp"
#include "provider/soft/scheduling/turn_clock.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/network_turn.hpp"
#include "provider/soft/transport/post.hpp"
#include "roce/at_once.hpp"

namespace dapple::soft {

[[gnu::flatten]] ibv_send_wr* post_plain_sends(Engines& engines, Qp& qp, ibv_send_wr* requests) {
  assert_held(qp.mutex);
  roce::PlainSend request;
  RingTo* ring = qp.transport.ring;
  if (qp.bare_connection == nullptr || ring == nullptr || ring->broken()) return requests;
  if (!is_plain_send(*requests, request)) return requests;
  engines.held.note_answer(qp.held);
  TurnClock clock;
  uint32_t sent = 0;
  uint64_t bytes = 0;
  {
    RingPost sink(qp.transport.path, *ring, requests->next == nullptr);
    while (sent < kPacketsOfATurn && qp.bare_connection->send_at_once(clock, request, sink, qp.context->memory)) {
      sent++;
      requests = requests->next;
      if (requests == nullptr || !is_plain_send(*requests, request)) break;
    }
    bytes = sink.bytes();
  }
  if (sent == 0) return requests;
  ring->published(sent, qp.traffic->same_host_sent_packets);
  qp.traffic->sent_bytes.add(bytes);
  engines.take_deadline(qp, qp.bare_connection->deadline());
  return requests;
}

}  // namespace dapple::soft
