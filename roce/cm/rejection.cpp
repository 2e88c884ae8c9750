// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// REJ, ours and the peer's (IBTA 12.6.7).
#include <array>
#include <cassert>

#include "roce/cm/fill.hpp"
#include "roce/cm/manager.hpp"
#include "roce/packet/big_endian.hpp"

namespace dapple::roce::cm {

Mad Manager::rej_of(const Record& record, RejectReason reason, Data info, Data private_data) const {
  Rej rej{.comm_id = record.local_id,
          .remote_comm_id = record.remote_id,
          .subject = Subject::kOther,
          .info_size = static_cast<uint8_t>(info.size()),
          .reason = reason};
  if (record.state == State::kReqReceived) {
    rej.subject = Subject::kReq;
    // The peer knows our id only if we have sent an MRA.
    if (record.service_timeout == 0) rej.comm_id = 0;
  } else if (record.state == State::kRepReceived) {
    rej.subject = Subject::kRep;
  }
  fill(rej.info, info);
  if (reason == RejectReason::kTimeout) {
    // IBTA table 109: the sender's CA, by which a peer whose id we never heard of finds the connection.
    rej.info_size = sizeof record.path.ca_guid;
    store_be64(rej.info.data(), record.path.ca_guid);
  }
  fill(rej.private_data, private_data);
  return make_mad(record.transaction, rej);
}

void Manager::refuse(const Path& path, uint64_t transaction, const Rej& rej) {
  ++count_.sent;
  host_.send(path, make_mad(transaction, rej));
}

void Manager::refuse_stale(Time now, Record& old, const Path& path, uint64_t transaction, const Rej& rej) {
  ++count_.stale;
  Rej stale = rej;
  stale.reason = RejectReason::kStaleConnection;
  refuse(path, transaction, stale);
  // As in the kernel: the peer has lost the old connection, so it ends here, too.
  if (old.state == State::kEstablished) begin_disconnection(now, old, {});
}

void Manager::reject_and_go_on(Time now, Record& record, const Mad& rej) {
  record.ended = true;
  record.withdrawn = record.state == State::kRepSent;
  // The peer may have sent its RTU and think that it is connected. So the REJ comes again as often as the REP would
  // have come. A peer that has never confirmed may be a forged address, and gets no more datagrams than that.
  if (!record.withdrawn) record.retries_left = 0;
  record.message = rej;
  send(record, rej);
  table_.take_out(record, kByRemoteQpn);
  enter(record, State::kRejected);
  wait_rejected(now, record);
}

void Manager::wait_rejected(Time now, Record& record) {
  assert(record.state == State::kRejected && record.period > 0 && record.hold > 0);
  table_.timers().set(record, now + (record.retries_left > 0 ? record.period : record.hold));
}

// The peer has repeated the message that our REJ answers.
void Manager::repeat_rej(Time now, Record& record) {
  wait_rejected(now, record);
  if (!record.withdrawn) return send(record, record.message);
  // The peer repeats its REQ. If it does not have our REP, the kernel finds its connection only by a REJ of the REQ.
  MadView view;
  Rej rej;
  if (open_mad(record.message, view) != MadError::kNone) return;
  read(view, rej);
  rej.subject = Subject::kReq;
  send(record, make_mad(record.transaction, rej));
}

Status Manager::reject(Time now, Id id, RejectReason reason, Data info, Data private_data) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->state != State::kReqReceived && record->state != State::kRepReceived && record->state != State::kRepSent)
    return Status::kWrongState;
  if (info.size() > sizeof(Rej::info) || private_data.size() > sizeof(Rej::private_data)) return Status::kTooLong;
  reject_and_go_on(now, *record, rej_of(*record, reason, info, private_data));
  return done(*record);
}

Record* Manager::rejected_record(const Path& path, const Rej& rej) {
  if (rej.reason == RejectReason::kTimeout && rej.info_size >= sizeof(uint64_t)) {
    Record* record = table_.by_remote_id(path.remote, load_be64(rej.info.data()), rej.comm_id);
    if (record != nullptr) return record;
  }
  Record* record = table_.by_local_id(rej.remote_comm_id);
  if (record == nullptr || record->sidr) {
    ++count_.unknown;
    return nullptr;
  }
  if (is_foreign(*record, path)) return nullptr;
  // While we wait for the REP, the peer's id is unknown here.
  if (record->state == State::kReqSent) return record;
  if (rej.subject != Subject::kReq && record->remote_id == rej.comm_id) return record;
  ++count_.unexpected;
  return nullptr;
}

void Manager::received_rej(Time now, const Path& path, const MadView& view) {
  Rej rej;
  read(view, rej);
  Record* record = rejected_record(path, rej);
  if (record == nullptr) return;
  bool timewait = false;
  switch (record->state) {
    case State::kReqSent:
    case State::kReqReceived:
    case State::kRepSent:
      // As in the kernel: the peer knows the queue pair's number from before.
      timewait = rej.reason == RejectReason::kStaleConnection;
      break;
    case State::kRepReceived:
    case State::kEstablished:
    case State::kDreqSent:
      timewait = true;
      break;
    default:
      ++count_.duplicates;
      return;
  }
  const Data info = Data(rej.info).first(std::min<size_t>(rej.info_size, rej.info.size()));
  if (record->state == State::kDreqSent)
    emit(*record, {.type = EventType::kDisconnected});
  else
    emit(*record, {.type = EventType::kRejected,
                   .last = !timewait,
                   .reason = rej.reason,
                   .info = info,
                   .private_data = rej.private_data});
  if (!timewait) return finish(*record);
  // The peer has forgotten this connection: its next REQ is a new one.
  table_.take_out(*record, kByRemoteId);
  enter_timewait(now, *record);
}

}  // namespace dapple::roce::cm
