// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The side that listens (IBTA 12.9.6), and the MRAs of both.
#include <algorithm>

#include "roce/cm/exponent.hpp"
#include "roce/cm/manager.hpp"

namespace dapple::roce::cm {

namespace {

// 68 s, as rdma_cm of Linux asks for while its consumer thinks.
constexpr uint8_t kDefaultServiceTimeout = 24;

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
  const bool room = half_open_ < limits_.half_open && listener.half_open < limits_.half_open_each;
  Record* record = room ? add_record() : nullptr;
  if (record == nullptr) {
    ++count_.over_limit;
    return nullptr;
  }
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
  if (Record* old = table_.by_remote_id(req.ca_guid, req.comm_id)) return repeated_req(now, *old, path);
  Rej rej{.remote_comm_id = req.comm_id, .subject = Subject::kReq};
  // IBTA 12.9.8.3.1.
  if (Record* old = table_.by_remote_qpn(req.ca_guid, req.qpn))
    return refuse_stale(now, *old, path, view.transaction, rej);

  const bool ip_service = is_ip_service(req.service_id);
  IpHeader ip;
  const bool has_ip = ip_service && read_ip_header(req.private_data, ip);
  const Listener* listener = listener_for(req.service_id, path, has_ip ? &ip : nullptr);
  const bool served = listener != nullptr && !listener->parameters.datagram && has_ip == ip_service;
  const bool transport = req.service == Service::kReliable || req.service == Service::kUnreliable;
  if (!served || !transport) {
    ++count_.unserved;
    rej.reason = listener == nullptr ? RejectReason::kInvalidServiceId
                 : served            ? RejectReason::kInvalidTransport
                                     : RejectReason::kConsumer;
    return refuse(path, view.transaction, rej);
  }
  Record* record = admit(*listener, path, view, req.comm_id);
  if (record == nullptr) return;
  record->remote_guid = req.ca_guid;
  record->remote_qpn = req.qpn;
  record->max_retries = req.max_cm_retries;
  record->lifetime = wait_of(req.ack_timeout);
  record->period = record->lifetime + wait_of(req.local_response_timeout);
  // Twice the time after which the peer repeats its REQ.
  record->hold = 2 * (record->lifetime + wait_of(req.remote_response_timeout));
  table_.enter(*record, kByRemoteId);
  table_.enter(*record, kByRemoteQpn);
  change(*record, State::kReqReceived);
  emit(*record, {.type = EventType::kConnectRequest,
                 .listener = listener->id,
                 .req = &req,
                 .ip = has_ip ? &ip : nullptr,
                 .private_data = Data(req.private_data).subspan(has_ip ? kIpHeaderSize : 0)});
}

void Manager::repeated_req(Time now, Record& record, const Path& path) {
  if (is_foreign(record, path)) return;
  ++count_.duplicates;
  switch (record.state) {
    case State::kReqReceived:
      return send_mra(record, Subject::kReq);
    case State::kRepSent:
      return send(record, record.message);
    case State::kRejected:
      table_.timers().set(record, now + record.hold);
      return send(record, record.message);
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
  change(*record, State::kRepSent);
  send_first(now, *record, make_mad(record->transaction, sent));
  return Status::kOk;
}

void Manager::received_rtu(const Path& path, const MadView& view) {
  Rtu rtu;
  read(view, rtu);
  Record* record = by_both_ids(path, rtu.remote_comm_id, rtu.comm_id);
  if (record == nullptr) return;
  if (record->state != State::kRepSent) {
    // A connection that has been rejected meanwhile gets its DREQ soon.
    ++count_.duplicates;
    return;
  }
  table_.timers().cancel(*record);
  change(*record, State::kEstablished);
  emit(*record, {.type = EventType::kEstablished, .private_data = rtu.private_data});
}

Status Manager::note_established(Time, Id id) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kRepSent) return Status::kWrongState;
  table_.timers().cancel(*record);
  change(*record, State::kEstablished);
  emit(*record, {.type = EventType::kEstablished});
  return Status::kOk;
}

Status Manager::prolong(Time, Id id, uint8_t service_timeout) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kReqReceived && record->state != State::kRepReceived) return Status::kWrongState;
  record->service_timeout = std::clamp<uint8_t>(service_timeout, 1, 31);
  send_mra(*record, record->state == State::kReqReceived ? Subject::kReq : Subject::kRep);
  return Status::kOk;
}

void Manager::send_mra(Record& record, Subject subject) {
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
