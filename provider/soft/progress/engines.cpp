// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/engines.hpp"

#include <cassert>

#include "provider/common/clock.hpp"
#include "provider/soft/abi/plugin.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/network_turn.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft {
namespace {

constexpr roce::Time kMicrosecond = 1000;

// Adds what a number has grown by.
void grow(Counter& sum, Counter& of_device, uint64_t now, uint64_t before) {
  if (now == before) return;
  assert(now > before);
  sum.add(now - before);
  of_device.add(now - before);
}

}  // namespace

bool Engines::send_packets(Qp& qp, roce::Now now) {
  assert_held(qp.mutex);
  // Packets take the ring as long as the peer lives.
  if (qp.transport.ring != nullptr && !qp.transport.ring->broken()) return send_to_ring(qp, now);
  NetworkTurn turn(batches_, qp);
  const bool more = qp.engine->transmit(now, turn);
  turn.end();
  qp.scheduling.stuck = more && turn.packets() == 0;
  return more;
}

bool Engines::send_to_ring(Qp& qp, roce::Now now) {
  assert(qp.transport.row != 0);
  RingTurn turn(qp, *qp.transport.ring, publication_);
  const bool more = qp.engine->transmit(now, turn);
  turn.end();
  const RingTurn::Placements& placed = turn.placements();
  qp.scheduling.stuck = more && turn.packets() == 0 && placed.bytes == 0;
  if (placed.bytes > 0) count(qp, placed);
  return more;
}

void Engines::take_state(Qp& qp, bool more) {
  assert_held(qp.mutex);
  const roce::QpState state = qp.engine->state();
  if (state != qp.state.load(std::memory_order_relaxed)) {
    // A receive that is posted now sees the state, or is seen here.
    qp.state.store(state, std::memory_order_seq_cst);
    if (state == roce::QpState::kError) {
      publication_.withdraw_qp(qp.transport.published);
      qp.engine->receives_posted();
    }
  }
  if (qp.engine->counters() != qp.counted) count(qp);
  if (qp.scheduling.ends) return;
  if (more && ready.add(qp)) handover.note_ready();
  take_deadline(qp, qp.engine->deadline());
}

void Engines::count(Qp& qp, const RingTurn::Placements& placed) {
  PlacementCounters& all = counters_.placement;
  if (placed.writes > 0) all.writes.add(placed.writes);
  if (placed.reads > 0) all.reads.add(placed.reads);
  all.bytes.add(placed.bytes);
  qp.traffic->sent_bytes.add(placed.bytes - placed.read_bytes);
  qp.traffic->received_bytes.add(placed.read_bytes);
}

// Adds the engine's counts since the last call to the slot's counters.
void Engines::count(Qp& qp) {
  const roce::QpCounters& now = qp.engine->counters();
  EngineCounters& all = counters_.engine;
  DeviceTraffic& device = *qp.traffic;
  grow(all.sequence_naks_sent, device.sequence_naks_sent, now.sequence_naks_sent, qp.counted.sequence_naks_sent);
  grow(all.rnr_naks_sent, device.rnr_naks_sent, now.rnr_naks_sent, qp.counted.rnr_naks_sent);
  grow(all.duplicates, device.duplicates, now.duplicates, qp.counted.duplicates);
  grow(all.timeouts, device.timeouts, now.timeouts, qp.counted.timeouts);
  grow(all.retransmitted_packets, device.retransmitted_packets, now.retransmitted_packets,
       qp.counted.retransmitted_packets);
  grow(all.dropped_packets, device.dropped_packets, now.dropped_packets, qp.counted.dropped_packets);
  qp.counted = now;
}

void tell_of_event(Cq& cq) {
  if (cq.abi.cq.channel == nullptr) return;
  const CompletionMessage message = reinterpret_cast<uintptr_t>(&cq.abi);
  cq.context->file.channels.write(channel_writer(cq.abi.cq.channel), &message, sizeof(message), cq.completion_events);
}

void Engines::tell_of_completions(Cq& cq) {
  const uint32_t notice = cq.queue.take_notice();
  if ((notice & CompletionQueue::kOverrun) != 0 && !cq.queue.ignores_overruns())
    cq.context->raise(IBV_EVENT_CQ_ERR, &cq.abi, cq.asynchronous_events);
  if ((notice & CompletionQueue::kEventDue) != 0) tell_of_event(cq);
  if ((notice & CompletionQueue::kEventHeld) == 0) return;
  held_events.add(cq, now_ns() + cq.moderation_us.load(std::memory_order_relaxed) * kMicrosecond);
  handover.note_deadline(held_events.earliest());
}

void Engines::raise_held_events(roce::Time now) {
  held_events.expire(now, tell_of_event);
}

namespace {

// Events of other objects than the queue pair are planned ones.
void raise_event(Qp& qp, ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      if (qp.xrc != nullptr) return;
      return qp.context->raise(type, &qp.send_cq->abi, qp.send_cq->asynchronous_events);
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return qp.context->raise_port_event(type);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      if (qp.srq != nullptr) qp.context->raise(type, &qp.srq->abi, qp.srq->events);
      return;
    default:
      break;
  }
  const auto raise = [&](Qp& handle) { handle.context->raise(type, &handle.abi, handle.event_count); };
  if (qp.xrc == nullptr) return raise(qp);
  qp.xrc->table.tell_handles(qp, raise);
  qp.xrc->table.tell_elsewhere(qp, static_cast<uint32_t>(type));
}

}  // namespace

void Engines::tell_of_xrc(Srq& srq) {
  assert(srq.xrc.domain != nullptr && srq.xrc.cq != nullptr);
  if (srq.xrc.cq->queue.has_notice()) tell_of_completions(*srq.xrc.cq);
  if (srq.queue.take_limit_notice()) srq.context->raise(IBV_EVENT_SRQ_LIMIT_REACHED, &srq.abi, srq.events);
}

void Engines::tell_program(Qp& qp) {
  assert(!qp.mutex.is_held_here());
  if (qp.send_cq->queue.has_notice()) tell_of_completions(*qp.send_cq);
  if (qp.recv_cq->queue.has_notice()) tell_of_completions(*qp.recv_cq);
  if (qp.srq != nullptr && qp.srq->queue.take_limit_notice())
    qp.context->raise(IBV_EVENT_SRQ_LIMIT_REACHED, &qp.srq->abi, qp.srq->events);
  uint32_t events = qp.events.take();
  if ((events & QpEvents::kMarks) != 0) {
    assert((events & QpEvents::kXrcNoted) == 0 || qp.xrc != nullptr);
    assert((events & QpEvents::kPlannedOutage) == 0 || planned_ != nullptr);
    if ((events & QpEvents::kXrcNoted) != 0) qp.xrc->table.tell(qp.xrc->domain);
    if ((events & QpEvents::kPlannedOutage) != 0) planned_->take_port_down(*qp.context);
  }
  for (events &= ~QpEvents::kMarks; events != 0; events &= events - 1) {
    raise_event(qp, static_cast<ibv_event_type>(__builtin_ctz(events)));
  }
  wake_if_due();
}

}  // namespace dapple::soft
