// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/node.hpp"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/member/doors.hpp"
#include "provider/member/random.hpp"
#include "provider/soft/links/delivery.hpp"
#include "provider/soft/links/ring_post.hpp"
#include "provider/soft/links/wanted.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/locks/users_in_progress.hpp"
#include "provider/soft/progress/context.hpp"
#include "provider/soft/progress/placement_wanted.hpp"
#include "provider/soft/progress/post.hpp"
#include "provider/soft/progress/qp_publication.hpp"
#include "provider/soft/wire/udp_wire.hpp"
#include "roce/at_once.hpp"

namespace dapple::soft {
namespace {

// Never destroyed: the background thread lives until the process ends.
constinit Node* the_node = nullptr;
constinit bool handlers_registered = false;
constinit Mutex node_mutex{LockRank::kRuntime};

[[gnu::destructor]] void leave() {
  if (the_node != nullptr) the_node->leave();
}

}  // namespace

constinit std::atomic<uint32_t> Node::generation_{0};

Node::Node(std::unique_ptr<DaemonLink> link, std::unique_ptr<Outages> outages, std::unique_ptr<Wire> wire,
           const Slot& slot)
    : link_(std::move(link)),
      outages_(std::move(outages)),
      wire_(std::move(wire)),
      qps_(slot.number << 16, random_number(RandomUse::kQueuePairNumbers)),
      batches_(*wire_),
      multicast_(*wire_),
      gid_uses_(*slot.gid_uses, generation_),
      counters_(*slot.counters) {}

Node* Node::get(Problem& problem) {
  const CancelGuard whole;
  node_mutex.lock();
  if (the_node == nullptr) {
    prepare_heavy_barriers();
    std::unique_ptr<DaemonLink> link = DaemonLink::open(problem);
    Slot slot;
    std::unique_ptr<Outages> outages;
    std::unique_ptr<Wire> wire;
    if (link != nullptr && link->slot(slot, problem)) wire = UdpWire::open(slot, problem);
    if (wire != nullptr && prepare_outages(wire, outages, problem)) {
      std::unique_ptr<Node> node(new (std::nothrow) Node(std::move(link), std::move(outages), std::move(wire), slot));
      if (node == nullptr) {
        problem.set(ENOMEM, "no memory for the software device");
      } else if (!node->open_links(slot, problem)) {
        // The problem has the reason.
      } else if (!node->start_background(problem)) {
        // The same.
      } else {
        the_node = node.release();
        if (!handlers_registered) pthread_atfork(fork_prepare, fork_parent, fork_child);
        handlers_registered = true;
      }
    }
  }
  Node* node = the_node;
  node_mutex.unlock();
  return node;
}

void Node::fork_prepare() {
  lock_revival();
  node_mutex.lock();
  if (the_node != nullptr) the_node->link_->fork_prepare();
}

void Node::fork_parent() {
  if (the_node != nullptr) the_node->link_->fork_parent();
  node_mutex.unlock();
  unlock_revival();
}

// The parent's node stays in memory in the state of the fork; no code uses it again.
void Node::fork_child() {
  generation_.fetch_add(1, std::memory_order_relaxed);
  UsersInProgress::forget_others();
  if (the_node != nullptr) {
    the_node->link_->fork_child();
    the_node->wire_->close_in_child();
    the_node->links_.close_in_child();
    the_node->publication_.close_in_child();
    close_own(the_node->wake_fd_);
    the_node = nullptr;
  }
  node_mutex.unlock();
  unlock_revival();
}

bool Node::open_links(const Slot& slot, Problem& problem) {
  uint64_t most_bytes = 0;
  if (!most_ring_bytes(most_bytes)) {
    problem.set(EINVAL, "DAPPLE_SAME_HOST_MIB must be a number of MiB");
    return false;
  }
  ways_.open(*slot.ways);
  Way way = same_host_way(wire_->instrumented());
  if (way == Way::kSharedMemory) {
    if (placement_wanted() && publication_.open()) links_.place_by(publication_);
    way = links_.open(slot.number, slot.lease, slot.counters->same_host, ways_, most_bytes);
  } else {
    links_.stay_closed(way);
  }
  if (way != Way::kSharedMemory) ways_.set_no_rings(way);
  return true;
}

ChosenWay Node::choose_way(const Path& path) {
  ChosenWay chosen;
  WayRow row;
  memcpy(row.source, path.source, sizeof row.source);
  memcpy(row.destination, path.destination, sizeof row.destination);
  row.way = delivery(path);
  if (row.way == Way::kSharedMemory) {
    row.slot = static_cast<uint16_t>(path.destination_qpn >> 16);
    chosen.ring = links_.get(row.slot, row.way);
  }
  if (chosen.ring != nullptr) row.ring = chosen.ring->number();
  chosen.place = ways_.take(row);
  // The ring may have ended before the table had its row.
  if (chosen.ring != nullptr && chosen.ring->broken()) ways_.end_ring(row.ring, chosen.ring->end());
  return chosen;
}

ChosenWay Node::choose_way_of_datagrams() {
  WayRow row;
  row.way = Way::kDatagrams;
  return {nullptr, ways_.take(row)};
}

void Node::leave_way(ChosenWay way) {
  links_.put(way.ring);
  ways_.leave(way.place);
}

int Node::add(Qp& qp) {
  if (qp.init.qp_type == IBV_QPT_UD) wire_->expect_datagrams();
  if (!timers_.make_room()) return ENOMEM;
  if (qps_.add(qp) != 0) return 0;
  timers_.remove(qp);
  return ENOMEM;
}

void Node::remove(Qp& qp) {
  revoke_qp(qp);
  {
    const BriefLock lock(qp.mutex);
    qp.dying = true;
  }
  if (held_count_.load() != 0) catch_up();
  timers_.remove(qp);
  forget_ready(qp);
  qps_.remove(qp, std::unique_lock(receive_mutex_));
  leave_way({qp.ring, qp.way_place});
  qp.source = {};
}

void Node::remove_all(Context& context) {
  while (Qp* qp = qps_.any_of(context)) {
    multicast_.detach_from_all(*qp);
    remove(*qp);
  }
}

bool Node::transmit(Qp& qp, roce::Now now) {
  // Packets take the ring as long as the peer lives.
  if (qp.ring != nullptr && !qp.ring->broken()) return transmit_to_ring(qp, now);
  NetworkTurn turn(batches_, qp);
  const bool more = qp.engine->transmit(now, turn);
  turn.end();
  qp.stuck = more && turn.packets() == 0;
  return more;
}

bool Node::transmit_to_ring(Qp& qp, roce::Now now) {
  RingTurn turn(qp, *qp.ring);
  const bool more = qp.engine->transmit(now, turn);
  turn.end();
  const RingTurn::Placements& placed = turn.placements();
  qp.stuck = more && turn.packets() == 0 && placed.bytes == 0;
  if (placed.bytes > 0) count(placed);
  return more;
}

void Node::settle(Qp& qp, roce::Now now) {
  attend(qp, transmit(qp, now));
}

void Node::settle_state(Qp& qp) {
  if (qp.engine->state() <= roce::QpState::kRtr) return attend(qp, false);
  TurnClock clock;
  settle(qp, clock);
}

void Node::attend(Qp& qp, bool more) {
  const roce::QpState state = qp.engine->state();
  if (state != qp.state.load(std::memory_order_relaxed)) {
    // A receive that is posted now sees the state, or is seen here.
    qp.state.store(state, std::memory_order_seq_cst);
    if (state == roce::QpState::kError) {
      publication_.withdraw_qp(qp.published);
      qp.engine->receives_posted();
    }
  }
  if (qp.engine->counters() != qp.counted) count(qp);
  if (qp.dying) return;
  if (more) make_ready(qp);
  schedule(qp, qp.engine->deadline());
}

void Node::schedule(Qp& qp, roce::Time deadline) {
  if (timers_.schedule(qp, deadline) && timers_.earliest() < planned_wake_.load()) wake_due_.store(true);
}

[[gnu::flatten]] ibv_send_wr* Node::send_at_once(Qp& qp, ibv_send_wr* requests) {
  roce::PlainSend request;
  if (qp.bare_connection == nullptr || qp.ring == nullptr || qp.ring->broken()) return requests;
  if (!is_plain_send(*requests, request)) return requests;
  note_answer(qp);
  TurnClock clock;
  uint32_t sent = 0;
  {
    RingPost sink(qp.path, *qp.ring, requests->next == nullptr);
    while (sent < kPacketsOfATurn && qp.bare_connection->send_at_once(clock, request, sink, qp.context->memory)) {
      sent++;
      requests = requests->next;
      if (requests == nullptr || !is_plain_send(*requests, request)) break;
    }
  }
  if (sent == 0) return requests;
  qp.ring->published(sent);
  schedule(qp, qp.bare_connection->deadline());
  return requests;
}

void Node::count(const RingTurn::Placements& placed) {
  PlacementCounters& all = counters_.placement;
  if (placed.writes > 0) all.writes.add(placed.writes);
  if (placed.reads > 0) all.reads.add(placed.reads);
  all.bytes.add(placed.bytes);
}

// Adds the engine's counts since the last call to the slot's counters.
void Node::count(Qp& qp) {
  const roce::QpCounters& now = qp.engine->counters();
  EngineCounters& all = counters_.engine;
  all.sequence_naks_sent.add(now.sequence_naks_sent - qp.counted.sequence_naks_sent);
  all.rnr_naks_sent.add(now.rnr_naks_sent - qp.counted.rnr_naks_sent);
  all.duplicates.add(now.duplicates - qp.counted.duplicates);
  all.timeouts.add(now.timeouts - qp.counted.timeouts);
  all.retransmitted_packets.add(now.retransmitted_packets - qp.counted.retransmitted_packets);
  all.dropped_packets.add(now.dropped_packets - qp.counted.dropped_packets);
  qp.counted = now;
}

void Node::make_ready(Qp& qp) {
  if (qp.ready) return;
  qp.ready = true;
  QpTable::pin(qp);
  {
    const std::lock_guard lock(ready_mutex_);
    qp.next_ready = nullptr;
    (first_ready_ == nullptr ? first_ready_ : last_ready_->next_ready) = &qp;
    last_ready_ = &qp;
    any_ready_.store(true);
  }
  // If the background thread steps aside, a polling thread looks itself, or the background thread does when it takes
  // over again.
  if (!steps_aside_.load()) wake_due_.store(true, std::memory_order_relaxed);
}

void Node::forget_ready(Qp& qp) {
  const std::lock_guard lock(ready_mutex_);
  Qp* before = nullptr;
  for (Qp* at = first_ready_; at != nullptr; before = at, at = at->next_ready) {
    if (at != &qp) continue;
    (before == nullptr ? first_ready_ : before->next_ready) = qp.next_ready;
    if (last_ready_ == &qp) last_ready_ = before;
    QpTable::unpin(qp);
    return;
  }
}

namespace {

void deliver_notice(Context& context, Cq& cq) {
  const uint32_t notice = cq.queue.take_notice();
  if ((notice & CompletionQueue::kOverrun) != 0) context.raise(IBV_EVENT_CQ_ERR, &cq.abi, cq.asynchronous_events);
  if ((notice & CompletionQueue::kEventDue) != 0 && cq.abi.cq.channel != nullptr) {
    const CompletionMessage message = reinterpret_cast<uintptr_t>(&cq.abi);
    context.pipes.write(channel_writer(cq.abi.cq.channel), &message, sizeof(message), cq.completion_events);
  }
}

// Events of other objects than the queue pair are planned ones.
void raise_event(Qp& qp, ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
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
      return qp.context->raise(type, &qp.abi, qp.event_count);
  }
}

}  // namespace

void Node::deliver(Qp& qp) {
  if (qp.send_cq->queue.has_notice()) deliver_notice(*qp.context, *qp.send_cq);
  if (qp.recv_cq->queue.has_notice()) deliver_notice(*qp.context, *qp.recv_cq);
  if (qp.srq != nullptr && qp.srq->queue.take_limit_notice())
    qp.context->raise(IBV_EVENT_SRQ_LIMIT_REACHED, &qp.srq->abi, qp.srq->events);
  uint32_t events = qp.events.take();
  if ((events & QpEvents::kPlanned) != 0) deliver_planned(qp, events);
  for (events &= ~QpEvents::kPlanned; events != 0; events &= events - 1) {
    raise_event(qp, static_cast<ibv_event_type>(__builtin_ctz(events)));
  }
  wake_if_due();
}

}  // namespace dapple::soft
