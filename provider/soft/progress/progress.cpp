// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Node's progress: packets that came, deadlines, queue pairs that wait for their turn.
#include <sched.h>
#include <string.h>

#include <cassert>

#include "provider/common/host_guards.hpp"
#include "provider/soft/locks/spin_pause.hpp"
#include "provider/soft/memory/careful_stores.hpp"
#include "provider/soft/placement/place.hpp"
#include "provider/soft/progress/considerate_yield.hpp"
#include "provider/soft/progress/context.hpp"
#include "provider/soft/progress/fetch.hpp"
#include "provider/soft/progress/node.hpp"
#include "roce/at_once.hpp"

namespace dapple::soft {
namespace {

// The most queue pairs, or rounds, of one call, so that packets and deadlines get their turn, too.
constexpr uint32_t kMaxAtOnce = 64;
constexpr uint32_t kPollsInVain = 8;
// A peer on this host answers within that many polls, which cost little then.
constexpr uint32_t kSameHostTurns = 256;
// Meanwhile a poller looks at the network once in that many turns: a look takes as long as dozens of them.
constexpr uint32_t kTurnsUnlooked = 512;
constexpr uint32_t kTurnsToADeadline = 8;
// Fetching this many bytes counts as one poll, so that a thread that fetches counts as one that polls every 50 us.
constexpr uint64_t kFetchedInAPoll = 64 * 1024;
// A P_Key without the bit of the membership.
constexpr uint16_t kPkeyBase = 0x7FFF;

}  // namespace

namespace {

bool comes_from_peer(const Arrival& arrival, const Path& path) {
  return memcmp(arrival.source, path.destination, 16) == 0 && memcmp(arrival.destination, path.source, 16) == 0;
}

}  // namespace

inline bool Node::receive_at_once(const Arrival& arrival) {
  roce::PlainPacket packet;
  if (arrival.reference != nullptr || !roce::parse_plain(arrival.headers, arrival.transport, packet)) return false;
  Qp* qp = qps_.find(packet.destination_qpn);
  if (qp == nullptr) return false;
  packet.acknowledgement = arrival.acknowledgement;
  bool finished = false;
  {
    const BriefLock lock(qp->mutex);
    if (qp->bare_connection == nullptr || !comes_from_peer(arrival, qp->path)) return false;
    ReceiveQueue& receives = qp->srq != nullptr ? qp->srq->queue : qp->own_receives;
    if (!qp->bare_connection->receive_at_once(clock_, packet, qp->context->memory, receives, qp->recv_cq->queue))
      return false;
    finished = finish_at_once(*qp);
  }
  if (finished) {
    wake_if_due();
  } else {
    touch(*qp);
  }
  return true;
}

// Under the locks of receiving and of the queue pair, which has executed a plain packet: does what finish_touched()
// would do, if that is only to hold the acknowledgement and to note the deadline. False: call touch().
inline bool Node::finish_at_once(Qp& qp) {
  if (qp.touched || qp.dying) return false;
  if (qp.bare_connection->state() != qp.state.load(std::memory_order_relaxed)) return false;
  if (qp.send_cq->queue.has_notice() || qp.recv_cq->queue.has_notice() || qp.events.any()) return false;
  if (qp.srq != nullptr && qp.srq->queue.has_limit_notice()) return false;
  const bool finished = !must_send_now(qp, qp.bare_connection->owes());
  if (finished) schedule(qp, qp.bare_connection->deadline());
  return finished;
}

// Hands packet_ out. `arrival` has the rest.
inline void Node::receive_into(Qp& qp, const Arrival& arrival) {
  const BriefLock lock(qp.mutex);
  const bool is_datagram = qp.init.qp_type == IBV_QPT_UD;
  if (!is_datagram && !comes_from_peer(arrival, qp.path)) {
    counters_.node.wrong_address.add();
    return;
  }
  if (arrival.reference != nullptr) return receive_reference(qp, arrival);
  if (!is_datagram) return qp.engine->receive(clock_, packet_);
  const CarefulStores careful(worker_ != Worker::kPoller);
  qp.engine->receive(clock_, packet_);
}

[[gnu::noinline]] void Node::receive_reference(Qp& qp, const Arrival& arrival) {
  const QpDescription sender = counterpart(qp.path, qp.qpn, 0);
  Context& context = *qp.context;
  const FetchAhead ahead = {arrivals_,       arrival.next_reference, {qp.pd->number, qp.qpn},
                            qp.own_receives, context.memory,         ahead_};
  // A shared receive may go to another queue pair.
  const bool looks_ahead = qp.srq == nullptr && qp.checked == nullptr && context.memory_is_bare();
  const FetchedBytes bytes(qp.ring != nullptr ? &qp.ring->peer_memory() : nullptr, sender, *arrival.reference,
                           counters_.placement, looks_ahead ? &ahead : nullptr);
  packet_.loan = &bytes;
  qp.engine->receive(clock_, packet_);
  packet_.loan = nullptr;
  // A thread that fetches bytes for a while counts as one that polls meanwhile.
  const uint64_t before = fetched_bytes_ / kFetchedInAPoll;
  fetched_bytes_ += arrival.reference->length;
  const auto polls = static_cast<uint32_t>(fetched_bytes_ / kFetchedInAPoll - before);
  if (worker_ == Worker::kPoller)
    polls_.store(polls_.load(std::memory_order_relaxed) + polls, std::memory_order_relaxed);
}

inline void Node::hand_out(Qp& qp, const Arrival& arrival) {
  receive_into(qp, arrival);
  touch(qp);
}

inline void Node::touch(Qp& qp) {
  if (qp.touched) return;
  qp.touched = true;
  assert(touched_count_ < kMaxTouched);
  touched_[touched_count_++] = &qp;
  if (touched_count_ == kMaxTouched) finish_touched();
}

[[gnu::noinline]] void Node::hand_out_to_group(const Arrival& arrival) {
  uint32_t members[kMaxAttachments];
  const uint32_t count = multicast_.members(arrival.destination, arrival.netdev_index, members, kMaxAttachments);
  for (uint32_t i = 0; i < count; ++i) {
    if (Qp* qp = qps_.find(members[i])) hand_out(*qp, arrival);
  }
}

// Each packet goes this way, so all but the rare parts are inlined.
[[gnu::flatten]] void Node::arrived(const Arrival& arrival) {
  arrivals_++;
  if (receive_at_once(arrival)) return;
  if (roce::parse(arrival.headers, arrival.transport, packet_) != roce::ParseError::kNone) {
    counters_.node.malformed.add();
    return;
  }
  packet_.grh = arrival.grh;
  packet_.acknowledgement = arrival.acknowledgement;
  // IBTA 9.6.1.1.3: the table holds the default key only, as a full member.
  if ((packet_.headers.pkey & kPkeyBase) != kPkeyBase) {
    counters_.node.wrong_pkey.add();
    return;
  }
  const uint32_t qpn = packet_.headers.destination_qpn;
  if (qpn == kMulticastQpn) return hand_out_to_group(arrival);
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) {
    counters_.node.no_queue_pair.add();
    return;
  }
  hand_out(*qp, arrival);
}

[[gnu::noinline]] void Node::finish_touched() {
  for (uint32_t i = 0; i < touched_count_; ++i) {
    Qp& qp = *touched_[i];
    {
      const BriefLock lock(qp.mutex);
      qp.touched = false;
      attend(qp, must_send_now(qp, qp.engine->owes()) && transmit(qp, clock_));
    }
    deliver(qp);
  }
  touched_count_ = 0;
}

bool Node::expire_due() {
  const roce::Time earliest = timers_.earliest();
  if (earliest == roce::kNever || earliest > clock_.rough() + roce::kRoughError) return false;
  bool any = false;
  for (uint32_t i = 0; i < kMaxAtOnce; ++i) {
    Qp* qp = timers_.pop_due(clock_.exact());
    if (qp == nullptr) break;
    any = true;
    {
      const BriefLock lock(qp->mutex);
      if (qp->engine->deadline() <= clock_.exact()) qp->engine->expire(clock_);
      settle(*qp, clock_);
    }
    deliver(*qp);
    QpTable::unpin(*qp);
  }
  return any;
}

// Lets the queue pairs that wait for their turn send. True if one of them could send.
bool Node::run_ready() {
  if (!any_ready_.load()) return false;
  Qp* last = nullptr;
  bool any = false;
  for (uint32_t i = 0; i < kMaxAtOnce; ++i) {
    Qp* qp = nullptr;
    {
      const std::lock_guard lock(ready_mutex_);
      qp = first_ready_;
      if (i == 0) last = last_ready_;
      if (qp != nullptr) first_ready_ = qp->next_ready;
      if (first_ready_ == nullptr) {
        last_ready_ = nullptr;
        any_ready_.store(false, std::memory_order_relaxed);
      }
    }
    if (qp == nullptr) break;
    {
      const BriefLock lock(qp->mutex);
      qp->ready = false;
      settle(*qp, clock_);
      any |= !qp->stuck;
    }
    const bool was_last = qp == last;
    deliver(*qp);
    QpTable::unpin(*qp);
    if (was_last) break;
  }
  return any;
}

// Under receive_mutex_: does the work that the background thread found while another thread had the lock. False if
// there is none.
bool Node::attend_links() {
  if (!links_due_.load(std::memory_order_relaxed)) return false;
  links_due_.store(false, std::memory_order_relaxed);
  const CancelGuard whole;
  links_.attend();
  return true;
}

// Packets of this host cost no system call. While they come, a poller pays for a look at the network only now and then.
bool Node::receive_packets() {
  attend_links();
  bool any = links_.receive(*this) > 0;
  if (any) {
    same_host_turns_ = kSameHostTurns;
  } else if (same_host_turns_ > 0) {
    --same_host_turns_;
  }
  if (same_host_turns_ > 0 && worker_ == Worker::kPoller && ++turns_ < kTurnsUnlooked) return any;
  turns_ = 0;
  return wire_->receive(*this) > 0 || any;
}

bool Node::work(Worker worker) {
  clock_.restart();
  worker_ = worker;
  if (worker == Worker::kPoller)
    polled_turns_.store(polled_turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (held_count_.load(std::memory_order_relaxed) != 0) send_held_in_time();
  bool any = receive_packets();
  if (touched_count_ > 0) finish_touched();
  // A look at the clock takes as long as one at the rings. A thread that polls is soon here again.
  if (worker == Worker::kOther || polled_turns_.load(std::memory_order_relaxed) % kTurnsToADeadline == 0)
    any |= expire_due();
  any |= run_ready();
  return any;
}

void Node::progress() {
  [[gnu::tls_model("initial-exec")]] static thread_local constinit ConsiderateYield yield;
  if (!receive_mutex_.try_lock()) {
    polls_.fetch_add(1, std::memory_order_relaxed);
    // The lock's owner may wait for this CPU.
    yield(now, sched_yield);
    return;
  }
  // A poll of another thread may get lost in the count.
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  poller_works_.store(true, std::memory_order_relaxed);
  const bool any = work(Worker::kPoller);
  send_held_alone();
  const bool peer_is_near = same_host_turns_ > 0;
  poller_works_.store(false, std::memory_order_relaxed);
  receive_mutex_.unlock();
  // A program that polls in a loop would keep its peer from a CPU that they share.
  [[gnu::tls_model("initial-exec")]] static thread_local constinit uint32_t in_vain = 0;
  in_vain = any ? 0 : in_vain + 1;
  // Two CPUs of a virtual machine may be two threads of one core, and then polls in vain would slow the peer down.
  if (in_vain != 0 && peer_is_near) spin_pause();
  // Each yield looks at the clock, too.
  if (in_vain != 0 && in_vain % kPollsInVain == 0 && !peer_is_near) yield(now, sched_yield);
}

void Node::catch_up() {
  const BriefLock lock(receive_mutex_);
  for (uint32_t i = 0; i < kMaxAtOnce && work(Worker::kOther); ++i) {
  }
}

}  // namespace dapple::soft
