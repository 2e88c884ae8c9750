// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The side that listens (IBTA 12.9.6), and the MRAs of both.
#include <algorithm>
#include <array>
#include <cassert>

#include "roce/cm/exponent.hpp"
#include "roce/cm/manager.hpp"

namespace dapple::roce::cm {

namespace {

// 68 s, as rdma_cm of Linux asks for while its consumer thinks.
constexpr uint8_t kDefaultServiceTimeout = 24;
// The number of unconfirmed connections, the oldest ones, of which one is chosen to give way.
constexpr size_t kCandidates = 16;

}  // namespace

Listener* Manager::listener_for(uint64_t service_id, const Path& path, const IpHeader* ip) const {
  return listeners_.match({service_id, path.device, ip != nullptr ? ip->destination : path.local});
}

Record* Manager::admit(const Listener& listener, const Path& path, const MadView& view, uint32_t remote_id) {
  // A request beyond these limits gets no answer: the peer asks again, and there may be room then.
  if (listener.pending >= listener.parameters.backlog) {
    ++count_.over_backlog;
    return nullptr;
  }
  const bool room = pending_ < limits_.pending && listener.pending < limits_.pending_each;
  Record* record = room ? add_record() : nullptr;
  if (record == nullptr) {
    ++count_.over_limit;
    return nullptr;
  }
  assert(listener.pending <= pending_);
  record->listener = listener.id;
  record->user = listener.parameters.user;
  record->path = path;
  record->remote_id = remote_id;
  record->transaction = view.transaction;
  return record;
}

void Manager::received_req(Time now, const Path& path, const MadView& view) {
  Req req;
  read(view, req);
  if (Record* old = table_.by_remote_id(path.remote, req.ca_guid, req.comm_id)) return repeated_req(now, *old);
  Rej rej{.remote_comm_id = req.comm_id, .subject = Subject::kReq};
  // IBTA 12.9.8.3.1.
  if (Record* old = table_.by_remote_qpn(path.remote, req.ca_guid, req.qpn))
    return refuse_stale(now, *old, path, view.transaction, rej);

  const bool ip_service = is_ip_service(req.service_id);
  IpHeader ip;
  const bool has_ip = ip_service && read_ip_header(req.private_data, ip);
  const Listener* listener = listener_for(req.service_id, path, has_ip ? &ip : nullptr);
  const bool served = listener != nullptr && !listener->parameters.datagram && has_ip == ip_service;
  const bool transport = req.service == Service::kReliable || req.service == Service::kUnreliable;
  if (!served || !transport) {
    ++count_.unserved;
    if (listener == nullptr && now < others_until_) return;
    rej.reason = listener == nullptr ? RejectReason::kInvalidServiceId
                 : served            ? RejectReason::kInvalidTransport
                                     : RejectReason::kConsumer;
    return refuse(path, view.transaction, rej);
  }
  Record* record = admit(*listener, path, view, req.comm_id);
  if (record == nullptr) return;
  record->remote_guid = req.ca_guid;
  record->remote_qpn = req.qpn;
  record->lifetime = wait_of(req.ack_timeout);
  const Time asked = record->lifetime + wait_of(req.local_response_timeout);
  record->period = std::clamp(asked, kMinWaitForPeer, kMaxWaitForPeer);
  // A peer that asks for fewer and longer waits gets its time by more of them, within the field's width.
  const Time waits = asked * (req.max_cm_retries + Time{1}) / record->period;
  record->max_retries = std::max<uint8_t>(req.max_cm_retries, static_cast<uint8_t>(std::clamp<Time>(waits, 1, 16) - 1));
  // Twice the time after which the peer repeats its REQ.
  record->hold = std::min(2 * (record->lifetime + wait_of(req.remote_response_timeout)), kMaxHold);
  table_.enter(*record, kByRemoteId);
  table_.enter(*record, kByRemoteQpn);
  enter(*record, State::kReqReceived);
  emit(*record, {.type = EventType::kConnectRequest,
                 .listener = listener->id,
                 .req = &req,
                 .ip = has_ip ? &ip : nullptr,
                 .private_data = Data(req.private_data).subspan(has_ip ? kIpHeaderSize : 0)});
}

void Manager::repeated_req(Time now, Record& record) {
  ++count_.duplicates;
  switch (record.state) {
    case State::kReqReceived:
      return send_mra(record, Subject::kReq);
    case State::kRepSent:
      return send(record, record.message);
    case State::kRejected:
      return repeat_rej(now, record);
    case State::kDreqSent:
    case State::kTimewait:
      // The peer asks for a connection that has ended here: it did not receive our REP, and our REJ got lost.
      return send(record, rej_of(record, RejectReason::kStaleConnection, {}, {}));
    default:
      return;
  }
}

Status Manager::accept(Time now, Id id, const Rep& rep) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kReqReceived) return Status::kWrongState;
  Rep sent = rep;
  sent.comm_id = record->local_id;
  sent.remote_comm_id = record->remote_id;
  sent.ca_guid = record->path.ca_guid;
  record->local_qpn = rep.qpn & 0xFFFFFF;
  make_room_for_unconfirmed(now, *record);
  enter(*record, State::kRepSent);
  send_first(now, *record, make_mad(record->transaction, sent));
  return done(*record);
}

// A flood of requests from forged addresses never confirms. A real peer confirms as soon as it can, so the oldest ones
// are the least likely to be real; of these, one of the most frequent sender goes. A connection that waits for the
// consumer does not give way: the consumer may have its event and not yet its id.
void Manager::make_room_for_unconfirmed(Time now, const Record& record) {
  std::array<Record*, kCandidates> candidates{};
  size_t count = 0;
  const Listener* listener = listeners_.find(record.listener);
  if (listener != nullptr && listener->unconfirmed.size() >= limits_.unconfirmed_each) {
    for (Record* at = listener->unconfirmed.oldest(); at != nullptr && count < kCandidates;
         at = UnconfirmedOfOne::newer_than(*at))
      candidates[count++] = at;
  } else if (unconfirmed_.size() >= limits_.unconfirmed) {
    for (Record* at = unconfirmed_.oldest(); at != nullptr && count < kCandidates; at = Unconfirmed::newer_than(*at))
      candidates[count++] = at;
  }
  Record* victim = nullptr;
  ptrdiff_t most = 0;
  for (size_t i = 0; i < count; ++i) {
    const ptrdiff_t same =
        std::count_if(candidates.begin(), candidates.begin() + static_cast<ptrdiff_t>(count),
                      [&](const Record* other) { return other->path.remote == candidates[i]->path.remote; });
    if (same <= most) continue;
    most = same;
    victim = candidates[i];
  }
  if (victim != nullptr) evict(now, *victim);
}

// The peer, if it is real, asks again, and its REQ is a new one; or it has confirmed, and its RTU is answered by a
// DREQ.
void Manager::evict(Time now, Record& victim) {
  assert(is_unconfirmed(victim.state));
  ++count_.evicted;
  emit(victim, {.type = EventType::kUnreachable, .last = true});
  victim.ended = true;
  victim.withdrawn = true;
  victim.retries_left = 0;
  table_.take_out(victim, kByRemoteId);
  table_.take_out(victim, kByRemoteQpn);
  enter(victim, State::kRejected);
  wait_rejected(now, victim);
}

Status Manager::ignore(Id id) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (!is_pending(record->state)) return Status::kWrongState;
  ++count_.over_backlog;
  release(*record);
  return Status::kOk;
}

void Manager::received_rtu(Time now, const Path& path, const MadView& view) {
  Rtu rtu;
  read(view, rtu);
  Record* record = by_both_ids(path, rtu.remote_comm_id, rtu.comm_id);
  if (record == nullptr) return;
  if (record->state == State::kRejected && record->withdrawn) {
    // The peer has our REP, so it thinks that it is connected. A REJ has no confirmation; a DREQ has one.
    record->withdrawn = false;
    return begin_disconnection(now, *record, {});
  }
  if (record->state != State::kRepSent) {
    ++count_.duplicates;
    return;
  }
  table_.timers().cancel(*record);
  enter(*record, State::kEstablished);
  emit(*record, {.type = EventType::kEstablished, .private_data = rtu.private_data});
}

Status Manager::note_established(Time, Id id) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kRepSent) return Status::kWrongState;
  table_.timers().cancel(*record);
  enter(*record, State::kEstablished);
  emit(*record, {.type = EventType::kEstablished});
  return done(*record);
}

Status Manager::prolong(Time, Id id, uint8_t service_timeout) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kReqReceived && record->state != State::kRepReceived) return Status::kWrongState;
  record->service_timeout = std::clamp<uint8_t>(service_timeout, 1, 31);
  send_mra(*record, record->state == State::kReqReceived ? Subject::kReq : Subject::kRep);
  return done(*record);
}

void Manager::send_mra(Record& record, Subject subject) {
  assert(record.state == (subject == Subject::kReq ? State::kReqReceived : State::kRepReceived));
  if (record.service_timeout == 0) record.service_timeout = kDefaultServiceTimeout;
  const Mra mra{.comm_id = record.local_id,
                .remote_comm_id = record.remote_id,
                .subject = subject,
                .service_timeout = record.service_timeout};
  send(record, make_mad(record.transaction, mra));
}

void Manager::received_mra(Time now, const Path& path, const MadView& view) {
  Mra mra;
  read(view, mra);
  // The answer to a REQ tells us the peer's id for the first time.
  Record* record = mra.subject == Subject::kReq ? table_.by_local_id(mra.remote_comm_id)
                                                : by_both_ids(path, mra.remote_comm_id, mra.comm_id);
  if (record == nullptr) {
    if (mra.subject == Subject::kReq) ++count_.unknown;
    return;
  }
  if (is_foreign(*record, path)) return;
  const State awaited = mra.subject == Subject::kReq ? State::kReqSent : State::kRepSent;
  if (record->state != awaited || mra.subject == Subject::kOther) {
    ++count_.unexpected;
    return;
  }
  // Only one MRA counts for each sending, so that no peer can make us wait without limit.
  if (record->prolonged) {
    ++count_.duplicates;
    return;
  }
  record->prolonged = true;
  const Time until = now + wait_of(mra.service_timeout) + record->lifetime;
  table_.timers().set(*record, std::max(record->deadline, until));
}

}  // namespace dapple::roce::cm
