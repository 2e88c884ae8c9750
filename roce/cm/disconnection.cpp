// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The end of a connection (IBTA 12.9.8): DREQ, DREP, time wait.
#include <cassert>

#include "roce/cm/fill.hpp"
#include "roce/cm/manager.hpp"

namespace dapple::roce::cm {

void Manager::begin_disconnection(Time now, Record& record, Data private_data) {
  Dreq dreq{.comm_id = record.local_id, .remote_comm_id = record.remote_id, .remote_qpn = record.remote_qpn};
  fill(dreq.private_data, private_data);
  enter(record, State::kDreqSent);
  record.message = make_mad(host_.random(), dreq);
  record.retries_left = record.max_retries;
  send(record, record.message);
  table_.timers().set(record, now + record.period);
}

Status Manager::disconnect(Time now, Id id, Data private_data) {
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (private_data.size() > sizeof(Dreq::private_data)) return Status::kTooLong;
  if (record->state == State::kDreqSent || record->state == State::kTimewait) return Status::kOk;
  if (record->state != State::kEstablished) return Status::kWrongState;
  begin_disconnection(now, *record, private_data);
  return done(*record);
}

void Manager::enter_timewait(Time now, Record& record) {
  assert(!record.sidr && record.lifetime > 0);
  // The peer may use its queue pair's number again, as the kernel does; a REQ of this connection that is still on its
  // way is known by its comm id.
  table_.take_out(record, kByRemoteQpn);
  enter(record, State::kTimewait);
  table_.timers().set(record, now + record.lifetime);
}

void Manager::received_dreq(Time now, const Path& path, const MadView& view) {
  Dreq dreq;
  read(view, dreq);
  Record* record = table_.by_local_id(dreq.remote_comm_id);
  const bool known = record != nullptr && !record->sidr && record->remote_id == dreq.comm_id;
  if (known && is_foreign(*record, path)) return;
  // In kRepReceived: the passive side has taken its REP back, and its REJ got lost.
  const bool connected = known && (record->state == State::kEstablished || record->state == State::kRepSent ||
                                   record->state == State::kRepReceived || record->state == State::kDreqSent);
  const bool before = known && record->state == State::kReqReceived;
  if (before || (connected && dreq.remote_qpn != record->local_qpn)) {
    ++count_.unexpected;
    return;
  }
  if (!known) ++count_.unknown;
  if (!known && now < others_until_) return;
  if (known && !connected) ++count_.duplicates;
  // The kernel's DREP waits for the consumer's rdma_disconnect(); ours does not, so the peer's time wait begins even if
  // the consumer is slow or dead. A DREQ for an unknown connection also gets a DREP.
  const Drep drep{.comm_id = dreq.remote_comm_id, .remote_comm_id = dreq.comm_id};
  ++count_.sent;
  host_.send(path, make_mad(view.transaction, drep));
  if (!connected) return;
  emit(*record, {.type = EventType::kDisconnected, .private_data = dreq.private_data});
  enter_timewait(now, *record);
}

void Manager::received_drep(Time now, const Path& path, const MadView& view) {
  Drep drep;
  read(view, drep);
  Record* record = by_both_ids(path, drep.remote_comm_id, drep.comm_id);
  if (record == nullptr) return;
  if (record->state != State::kDreqSent) {
    ++count_.duplicates;
    return;
  }
  emit(*record, {.type = EventType::kDisconnected, .private_data = drep.private_data});
  enter_timewait(now, *record);
}

}  // namespace dapple::roce::cm
