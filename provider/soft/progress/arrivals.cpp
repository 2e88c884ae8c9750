// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/arrivals.hpp"

#include <string.h>

#include <cassert>

#include "provider/soft/memory/fault_tolerant_stores.hpp"
#include "provider/soft/placement/place.hpp"
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/fetch.hpp"
#include "provider/soft/transport/stray_packets.hpp"
#include "roce/at_once.hpp"

namespace dapple::soft {
namespace {

// Fetching this many bytes counts as one poll, so that a thread that fetches counts as one that polls every 50 us.
constexpr uint64_t kFetchedInAPoll = 64 * 1024;
// A P_Key without the bit of the membership.
constexpr uint16_t kPkeyBase = 0x7FFF;

bool comes_from_peer(const Arrival& arrival, const Path& path) {
  return memcmp(arrival.source, path.destination, 16) == 0 && memcmp(arrival.destination, path.source, 16) == 0;
}

// Why comes_from_peer() is false.
[[gnu::cold]] roce::DroppedMessage stray(const Qp& qp, const Arrival& arrival) {
  using Reason = roce::DroppedMessage::Reason;
  // Before RTR it has no peer.
  if (qp.state.load(std::memory_order_relaxed) < roce::QpState::kRtr) return {.reason = Reason::kState};
  if (memcmp(arrival.source, qp.transport.path.destination, 16) != 0)
    return {.reason = Reason::kStranger, .address = arrival.source};
  return {.reason = Reason::kOtherAddress, .address = arrival.destination};
}

}  // namespace

inline void Arrivals::touch(Qp& qp) {
  assert_held(receiving_);
  if (qp.scheduling.touched) return;
  qp.scheduling.touched = true;
  assert(touched_count_ < kMaxTouched);
  touched_[touched_count_++] = &qp;
  if (touched_count_ == kMaxTouched) finish_all();
}

// Only the thread that receives counts arrivals.
inline void Arrivals::count(const Qp& qp, const Arrival& arrival) {
  const size_t referred = arrival.reference != nullptr ? arrival.reference->length : 0;
  qp.traffic->received_packets.add_alone();
  qp.traffic->received_bytes.add_alone(arrival.transport.size() + referred);
}

inline bool Arrivals::take_plain(const Arrival& arrival) {
  roce::PlainPacket packet;
  if (arrival.reference != nullptr || !roce::parse_plain(arrival.headers, arrival.transport, packet)) return false;
  Qp* qp = qps_.find(packet.destination_qpn);
  if (qp == nullptr) return false;
  packet.acknowledgement = arrival.acknowledgement;
  bool finished = false;
  {
    const EngineTurn turn(engines_, *qp, clock_, EngineTurn::End::kWake);
    if (qp->bare_connection == nullptr || !comes_from_peer(arrival, qp->transport.path)) return false;
    ReceiveQueue& receives = qp->srq != nullptr ? qp->srq->queue : qp->own_receives;
    if (!qp->bare_connection->receive_at_once(clock_, packet, qp->context->memory, receives, qp->recv_cq->queue))
      return false;
    finished = is_finished(*qp);
  }
  count(*qp, arrival);
  if (!finished) touch(*qp);
  return true;
}

// The queue pair has executed a plain packet: does what finish_all() would do, if that is only to hold the
// acknowledgement and to note the deadline. False: call touch().
inline bool Arrivals::is_finished(Qp& qp) {
  assert_held(qp.mutex);
  if (qp.scheduling.touched || qp.scheduling.ends) return false;
  if (qp.bare_connection->state() != qp.state.load(std::memory_order_relaxed)) return false;
  if (qp.send_cq->queue.has_notice() || qp.recv_cq->queue.has_notice() || qp.events.any()) return false;
  if (qp.srq != nullptr && qp.srq->queue.has_limit_notice()) return false;
  if (engines_.held.must_send_now(qp, qp.bare_connection->owes(), true)) return false;
  engines_.take_deadline(qp, qp.bare_connection->deadline());
  return true;
}

// Executes packet_. `arrival` has the rest.
inline void Arrivals::execute(Qp& qp, const Arrival& arrival) {
  const BiasedLock lock(qp.mutex);
  const bool is_datagram = qp.init.qp_type == IBV_QPT_UD;
  if (!is_datagram && !comes_from_peer(arrival, qp.transport.path)) {
    counters_.node.wrong_address.add();
    if (qp.layers.peers_packets != nullptr) qp.layers.peers_packets->see_from(arrival.source);
    // Nobody else tells the sender of such a message.
    if (qp.init.qp_type == IBV_QPT_UC) qp.events.dropped(stray(qp, arrival));
    return;
  }
  count(qp, arrival);
  if (qp.layers.peers_packets != nullptr && qp.transport.ring == nullptr) [[unlikely]]
    qp.layers.peers_packets->see(packet_, *qp.engine);
  if (arrival.reference != nullptr) return take_reference(qp, arrival);
  if (!is_datagram) return qp.engine->receive(clock_, packet_);
  const FaultTolerantStores tolerant(engines_.held.worker() != Worker::kPoller);
  qp.engine->receive(clock_, packet_);
}

[[gnu::noinline]] void Arrivals::take_reference(Qp& qp, const Arrival& arrival) {
  assert_held(qp.mutex);
  const QpDescription sender = counterpart(qp.transport.path, qp.qpn, 0);
  Context& context = *qp.context;
  const FetchAhead ahead = {count_,          arrival.next_reference, {qp.pd->number, qp.qpn},
                            qp.own_receives, context.memory,         ahead_};
  // A shared receive may go to another queue pair.
  const bool looks_ahead = qp.srq == nullptr && qp.layers.checked == nullptr && context.memory_is_bare();
  assert(packet_.loan == nullptr && arrival.reference != nullptr);
  const FetchedBytes bytes(qp.transport.ring != nullptr ? &qp.transport.ring->peer_memory() : nullptr, sender,
                           *arrival.reference, counters_.placement, looks_ahead ? &ahead : nullptr);
  packet_.loan = &bytes;
  qp.engine->receive(clock_, packet_);
  packet_.loan = nullptr;
  // A thread that fetches bytes for a while counts as one that polls meanwhile.
  const uint64_t before = fetched_bytes_ / kFetchedInAPoll;
  fetched_bytes_ += arrival.reference->length;
  const auto polls = static_cast<uint32_t>(fetched_bytes_ / kFetchedInAPoll - before);
  if (engines_.held.worker() == Worker::kPoller) engines_.handover.count_polls(polls);
}

inline void Arrivals::take(Qp& qp, const Arrival& arrival) {
  execute(qp, arrival);
  touch(qp);
}

[[gnu::noinline]] void Arrivals::take_for_group(const Arrival& arrival) {
  uint32_t members[kMaxAttachments];
  const uint32_t count = multicast_.members(arrival.destination, arrival.netdev_index, members, kMaxAttachments);
  for (uint32_t i = 0; i < count; ++i) {
    if (Qp* qp = qps_.find(members[i])) take(*qp, arrival);
  }
}

// Nobody has the number of packet_.
[[gnu::noinline, gnu::cold]] void Arrivals::lose(const Arrival& arrival) {
  counters_.node.no_queue_pair.add();
  const StrayWatch watch = stray_watch.load(std::memory_order_acquire);
  const bool is_datagram = packet_.info->transport == roce::Transport::kUd;
  if (watch == nullptr || (!is_datagram && packet_.info->transport != roce::Transport::kUc)) return;
  watch({packet_.headers.destination_qpn, is_datagram ? packet_.headers.deth.source_qpn : 0, arrival.source});
}

// No engine takes the packet. A mark (provider/soft/check/races/mark.hpp) is no fault of its sender, which does not
// know whether this program looks at marks.
[[gnu::noinline, gnu::cold]] void Arrivals::take_other(roce::ParseError error, const Arrival& arrival) {
  if (error != roce::ParseError::kForHost || arrival.reference != nullptr) return counters_.node.malformed.add();
  Qp* qp = qps_.find(packet_.headers.destination_qpn);
  if (qp == nullptr) return;
  const BiasedLock lock(qp->mutex);
  if (qp->init.qp_type == IBV_QPT_UD || !comes_from_peer(arrival, qp->transport.path)) return;
  qp->engine->receive_for_host(packet_);
}

// Each packet goes this way, so all but the rare parts are inlined.
[[gnu::flatten]] void Arrivals::arrived(const Arrival& arrival) {
  assert_held(receiving_);
  count_++;
  if (take_plain(arrival)) return;
  const roce::ParseError error = roce::parse(arrival.headers, arrival.transport, packet_);
  if (error != roce::ParseError::kNone) return take_other(error, arrival);
  packet_.grh = arrival.grh;
  packet_.acknowledgement = arrival.acknowledgement;
  // IBTA 9.6.1.1.3: the table holds the default key only, as a full member.
  if ((packet_.headers.pkey & kPkeyBase) != kPkeyBase) {
    counters_.node.wrong_pkey.add();
    return;
  }
  const uint32_t qpn = packet_.headers.destination_qpn;
  if (qpn == kMulticastQpn) return take_for_group(arrival);
  Qp* qp = qps_.find(qpn);
  if (qp == nullptr) return lose(arrival);
  take(*qp, arrival);
}

void Arrivals::take_frame(Qp& qp, std::span<const std::byte> frame) {
  assert_held(receiving_);
  count_++;
  {
    const BiasedLock lock(qp.mutex);
    if (qp.scheduling.ends) return;
    qp.traffic->received_packets.add_alone();
    qp.traffic->received_bytes.add_alone(frame.size());
    roce::Packet packet;
    packet.payload = frame;
    const FaultTolerantStores tolerant(engines_.held.worker() != Worker::kPoller);
    qp.engine->receive(clock_, packet);
  }
  touch(qp);
}

[[gnu::noinline]] void Arrivals::finish_touched() {
  for (uint32_t i = 0; i < touched_count_; ++i) {
    Qp& qp = *touched_[i];
    assert(qp.scheduling.touched);
    EngineTurn turn(engines_, qp, clock_, EngineTurn::End::kSend);
    qp.scheduling.touched = false;
    if (!engines_.held.must_send_now(qp, qp.engine->owes(), !qp.scheduling.ends)) turn.ends_by(EngineTurn::End::kKeep);
  }
  touched_count_ = 0;
}

}  // namespace dapple::soft
