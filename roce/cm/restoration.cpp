// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Takes over the connections of a manager that has died.
#include <algorithm>

#include "roce/cm/exponent.hpp"
#include "roce/cm/manager.hpp"

namespace dapple::roce::cm {

namespace {

bool knows_peer(State state) {
  return state != State::kReqSent;
}

// A connection's state, and one of the side that the connection has.
bool is_restorable(State state, bool active) {
  if (active ? is_of_passive_side(state) : is_of_active_side(state)) return false;
  switch (state) {
    case State::kReqSent:
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kRepSent:
    case State::kEstablished:
    case State::kDreqSent:
    case State::kTimewait:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status Manager::save(Id id, Saved& saved) const {
  const Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  if (record->sidr) return Status::kUnsupported;
  saved = {.state = record->state,
           .active = record->active,
           .max_retries = record->max_retries,
           .path = record->path,
           .local_id = record->local_id,
           .remote_id = record->remote_id,
           .remote_guid = record->remote_guid,
           .local_qpn = record->local_qpn,
           .remote_qpn = record->remote_qpn,
           .transaction = record->transaction,
           .period = record->period,
           .lifetime = record->lifetime,
           .hold = record->hold};
  return Status::kOk;
}

bool Manager::has_both_ends(Id id) const {
  const Record* record = consumers(id);
  const Record* other = record == nullptr ? nullptr : table_.by_local_id(record->remote_id);
  if (other == nullptr || other->sidr || other->remote_id != record->local_id) return false;
  return other->state == State::kEstablished || other->state == State::kRepSent || other->state == State::kDreqSent;
}

Status Manager::restore(Time now, uint64_t user, const Saved& saved, Id& id) {
  if (!is_restorable(saved.state, saved.active != 0)) return Status::kWrongState;
  const bool peer = knows_peer(saved.state);
  if (saved.local_id == 0 || table_.by_local_id(saved.local_id) != nullptr ||
      (peer && table_.by_remote_id(saved.path.remote, saved.remote_guid, saved.remote_id) != nullptr)) {
    return Status::kInUse;
  }
  Record* record = table_.allocate();
  if (record == nullptr) return Status::kNoRoom;
  record->owned = true;
  record->active = saved.active != 0;
  record->user = user;
  record->path = saved.path;
  record->local_id = saved.local_id;
  record->remote_id = saved.remote_id;
  record->remote_guid = saved.remote_guid;
  record->local_qpn = saved.local_qpn & 0xFFFFFF;
  record->remote_qpn = saved.remote_qpn & 0xFFFFFF;
  record->transaction = saved.transaction;
  record->max_retries = saved.max_retries & 0xF;
  record->lifetime = std::clamp(saved.lifetime, kMinWait, kMaxWait);
  record->period = std::clamp(saved.period, kMinWait, 2 * kMaxWait);
  record->hold = std::clamp(saved.hold, kMinWait, 4 * kMaxWait);
  table_.enter(*record, kByLocalId);
  if (peer) table_.enter(*record, kByRemoteId);
  if (peer && saved.state != State::kTimewait) table_.enter(*record, kByRemoteQpn);
  // A DREQ is sent anew, below.
  if (saved.state != State::kDreqSent) enter(*record, saved.state);
  id = record->id;
  if (saved.state == State::kEstablished && record->active) {
    // For the case that the peer repeats its REP.
    record->message =
        make_mad(record->transaction, Rtu{.comm_id = record->local_id, .remote_comm_id = record->remote_id});
  } else if (saved.state == State::kDreqSent) {
    begin_disconnection(now, *record, {});
  } else if (saved.state == State::kTimewait) {
    table_.timers().set(*record, now + record->lifetime);
  }
  return done(*record);
}

}  // namespace dapple::roce::cm
