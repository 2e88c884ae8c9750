// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The side that connects (IBTA 12.9.5): REQ, REP, RTU.
#include "roce/cm/exponent.hpp"
#include "roce/cm/fill.hpp"
#include "roce/cm/manager.hpp"

namespace dapple::roce::cm {

Status Manager::connect(Time now, uint64_t user, const Path& path, const Req& req, Id& id) {
  if (req.service != Service::kReliable && req.service != Service::kUnreliable) return Status::kUnsupported;
  Record* record = add_record();
  if (record == nullptr) return Status::kNoRoom;
  record->active = true;
  record->user = user;
  record->path = path;
  record->local_qpn = req.qpn & 0xFFFFFF;
  record->transaction = host_.random();
  record->max_retries = req.max_cm_retries & 0xF;
  // IBTA 12.7.34: an ACK time-out includes the ways of two packets.
  record->lifetime = wait_of(req.ack_timeout);
  record->period = record->lifetime + wait_of(req.remote_response_timeout);
  record->hold = 2 * record->period;
  enter(*record, State::kReqSent);

  Req sent = req;
  sent.comm_id = record->local_id;
  sent.ca_guid = path.ca_guid;
  id = record->id;
  send_first(now, *record, make_mad(record->transaction, sent));
  return done(*record);
}

void Manager::received_rep(Time now, const Path& path, const MadView& view) {
  Rep rep;
  read(view, rep);
  const Rej rej{.comm_id = rep.remote_comm_id, .remote_comm_id = rep.comm_id, .subject = Subject::kRep};
  Record* record = table_.by_local_id(rep.remote_comm_id);
  if (record == nullptr || record->sidr || !record->active) {
    // The kernel sends nothing here, and its peer repeats its REP until it gives up.
    ++count_.unknown;
    Rej unknown = rej;
    unknown.reason = RejectReason::kInvalidCommId;
    return refuse(path, view.transaction, unknown);
  }
  if (is_foreign(*record, path)) return;
  if (record->state != State::kReqSent) {
    if (record->remote_id == rep.comm_id || record->state == State::kRejected) return repeated_rep(now, *record);
    ++count_.unexpected;
    return;
  }
  if (table_.by_remote_id(path.remote, rep.ca_guid, rep.comm_id) != nullptr) {
    ++count_.unexpected;
    return;
  }
  // IBTA 12.9.8.3.1. Our REQ is sent again, as the kernel's is, and the peer has had its DREQ by then.
  if (Record* old = table_.by_remote_qpn(path.remote, rep.ca_guid, rep.qpn))
    return refuse_stale(now, *old, path, view.transaction, rej);

  record->remote_id = rep.comm_id;
  record->remote_guid = rep.ca_guid;
  record->remote_qpn = rep.qpn;
  table_.enter(*record, kByRemoteId);
  table_.enter(*record, kByRemoteQpn);
  table_.timers().cancel(*record);
  enter(*record, State::kRepReceived);
  emit(*record, {.type = EventType::kResponse, .rep = &rep, .private_data = rep.private_data});
}

void Manager::repeated_rep(Time now, Record& record) {
  ++count_.duplicates;
  switch (record.state) {
    case State::kRepReceived:
      return send_mra(record, Subject::kRep);
    case State::kRejected:
      return repeat_rej(now, record);
    case State::kEstablished:
      return send(record, record.message);
    default:
      return;
  }
}

Status Manager::establish(Time, Id id, Data private_data) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kRepReceived) return Status::kWrongState;
  Rtu rtu{.comm_id = record->local_id, .remote_comm_id = record->remote_id};
  if (private_data.size() > rtu.private_data.size()) return Status::kTooLong;
  fill(rtu.private_data, private_data);
  record->message = make_mad(record->transaction, rtu);
  enter(*record, State::kEstablished);
  send(*record, record->message);
  return done(*record);
}

}  // namespace dapple::roce::cm
