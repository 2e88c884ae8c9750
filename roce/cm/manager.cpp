// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/cm/manager.hpp"

#include <cassert>
#include <initializer_list>
#include <new>

namespace dapple::roce::cm {

std::unique_ptr<Manager> Manager::create(const Limits& limits, Host& host) {
  std::unique_ptr<Manager> manager(new (std::nothrow) Manager(limits, host));
  if (manager == nullptr || !manager->table_.create(limits.records, host.random())) return nullptr;
  return manager;
}

void Manager::receive(Time now, const Path& path, std::span<const std::byte> mad) {
  ++count_.received;
  MadView view;
  if (open_mad(mad, view) != MadError::kNone) {
    ++count_.malformed;
    return;
  }
  take(now, path, view);
  assert_consistent();
}

void Manager::take(Time now, const Path& path, const MadView& view) {
  switch (view.attribute) {
    case Attribute::kReq:
      return received_req(now, path, view);
    case Attribute::kMra:
      return received_mra(now, path, view);
    case Attribute::kRej:
      return received_rej(now, path, view);
    case Attribute::kRep:
      return received_rep(now, path, view);
    case Attribute::kRtu:
      return received_rtu(now, path, view);
    case Attribute::kDreq:
      return received_dreq(now, path, view);
    case Attribute::kDrep:
      return received_drep(now, path, view);
    case Attribute::kSidrReq:
      return received_sidr_req(now, path, view);
    case Attribute::kSidrRep:
      return received_sidr_rep(path, view);
    // Alternate paths: none with RoCE, as in the kernel.
    case Attribute::kLap:
    case Attribute::kApr:
      break;
  }
  ++count_.unsupported;
}

Time Manager::deadline() const {
  const Record* first = table_.timers().first();
  return first == nullptr ? kNever : first->deadline;
}

void Manager::advance(Time now) {
  // Each round ends a record's wait or begins one of kMinWait at least, so this ends.
  for (Record* record = table_.timers().first(); record != nullptr && record->deadline <= now;
       record = table_.timers().first())
    expire(now, *record);
  assert(deadline() > now);
  assert_consistent();
}

void Manager::assert_consistent() const {
  assert(pending_ + unconfirmed_.size() + disconnecting_ <= table_.size());
  assert(remembered_.size() <= table_.size());
  assert(table_.timers().size() <= table_.size());
  assert(listeners_.count() <= limits_.listeners);
  // Each of these still waits for its end, which advance() brings.
  assert(remembered_.size() <= table_.timers().size());
}

Status Manager::done(const Record& record) const {
  record.assert_consistent();
  assert_consistent();
  return Status::kOk;
}

void Manager::expire(Time now, Record& record) {
  assert(may_have_deadline(record.state) && record.deadline <= now);
  table_.timers().cancel(record);
  switch (record.state) {
    case State::kReqSent:
    case State::kRepSent:
    case State::kDreqSent:
    case State::kSidrReqSent:
      if (record.retries_left == 0) return give_up(now, record);
      --record.retries_left;
      record.prolonged = false;
      ++count_.resent;
      send(record, record.message);
      table_.timers().set(record, now + record.period);
      return;
    case State::kTimewait:
      emit(record, {.type = EventType::kTimewaitExit, .last = true});
      return finish(record);
    case State::kRejected:
      if (record.retries_left == 0) return finish(record);
      --record.retries_left;
      ++count_.resent;
      send(record, record.message);
      return wait_rejected(now, record);
    default:
      return finish(record);
  }
}

void Manager::give_up(Time now, Record& record) {
  ++count_.timed_out;
  switch (record.state) {
    case State::kDreqSent:
      emit(record, {.type = EventType::kDisconnected, .timed_out = true});
      return enter_timewait(now, record);
    case State::kSidrReqSent:
      emit(record, {.type = EventType::kUnreachable, .last = true});
      return finish(record);
    default:
      // The peer, if it is alive, must not assume a connection.
      emit(record, {.type = EventType::kUnreachable, .last = true});
      return reject_and_go_on(now, record, rej_of(record, RejectReason::kTimeout, {}, {}));
  }
}

void Manager::send(const Record& record, const Mad& mad) {
  ++count_.sent;
  host_.send(record.path, mad);
}

void Manager::send_first(Time now, Record& record, const Mad& mad) {
  record.message = mad;
  record.retries_left = record.max_retries;
  record.prolonged = false;
  // Otherwise advance() would send without an end.
  assert(record.period > 0);
  send(record, mad);
  table_.timers().set(record, now + record.period);
}

void Manager::emit(const Record& record, Event event) {
  if (!record.owned || record.ended) return;
  event.id = record.id;
  event.user = record.user;
  event.path = &record.path;
  host_.event(event);
}

Record* Manager::add_record() {
  Record* record = table_.allocate();
  if (record == nullptr && remembered_.oldest() != nullptr) {
    ++count_.forgotten;
    release(*remembered_.oldest());
    record = table_.allocate();
  }
  if (record == nullptr) return nullptr;
  do record->local_id = static_cast<uint32_t>(host_.random());
  while (record->local_id == 0 || table_.by_local_id(record->local_id) != nullptr);
  table_.enter(*record, kByLocalId);
  record->owned = true;
  return record;
}

Record* Manager::consumers(Id id) const {
  Record* record = table_.find(id);
  return record != nullptr && record->owned ? record : nullptr;
}

void Manager::enter(Record& record, State state) {
  assert(may_follow(record.state, state));
  assert(!is_pending(record.state) || pending_ > 0);
  assert(record.state != State::kDreqSent || disconnecting_ > 0);
  if (is_pending(record.state)) --pending_;
  if (is_pending(state)) ++pending_;
  if (is_unconfirmed(record.state)) unconfirmed_.remove(record);
  if (is_unconfirmed(state)) unconfirmed_.add(record);
  if (record.state == State::kDreqSent) --disconnecting_;
  if (state == State::kDreqSent) ++disconnecting_;
  if (state == State::kEstablished) ++count_.established;
  Listener* listener = listeners_.find(record.listener);
  assert(listener == nullptr || !is_pending(record.state) || listener->pending > 0);
  if (listener != nullptr && is_pending(record.state)) --listener->pending;
  if (listener != nullptr && is_pending(state)) ++listener->pending;
  if (listener != nullptr && is_unconfirmed(record.state)) listener->unconfirmed.remove(record);
  if (listener != nullptr && is_unconfirmed(state)) listener->unconfirmed.add(record);
  record.state = state;
}

void Manager::remember(Record& record) {
  assert(record.owned);
  record.owned = false;
  if (remembered_.size() >= limits_.remembered && remembered_.oldest() != nullptr) {
    ++count_.forgotten;
    release(*remembered_.oldest());
  }
  remembered_.add(record);
  assert(remembered_.size() <= limits_.remembered || remembered_.size() == 1);
}

void Manager::release(Record& record) {
  if (!record.owned) remembered_.remove(record);
  enter(record, State::kClosed);
  table_.release(record);
}

void Manager::finish(Record& record) {
  if (!record.owned) return release(record);
  enter(record, State::kClosed);
  table_.timers().cancel(record);
  for (const KeyKind kind : {kByLocalId, kByRemoteId, kByRemoteQpn}) table_.take_out(record, kind);
}

bool Manager::is_foreign(const Record& record, const Path& path) {
  if (record.path.remote == path.remote) return false;
  ++count_.foreign;
  return true;
}

Record* Manager::by_both_ids(const Path& path, uint32_t local_id, uint32_t remote_id) {
  Record* record = table_.by_local_id(local_id);
  if (record == nullptr || record->sidr || record->remote_id != remote_id) {
    ++count_.unknown;
    return nullptr;
  }
  return is_foreign(*record, path) ? nullptr : record;
}

Status Manager::listen(const ListenParameters& parameters, Id& id) {
  if (listeners_.has_same(parameters)) return Status::kInUse;
  const Listener* listener = listeners_.add(parameters);
  if (listener == nullptr) return Status::kNoRoom;
  id = listener->id;
  return Status::kOk;
}

Status Manager::set_user(Id id, uint64_t user) {
  if (Listener* listener = listeners_.find(id)) {
    listener->parameters.user = user;
    return Status::kOk;
  }
  Record* record = consumers(id);
  if (record == nullptr) return Status::kNoSuchId;
  record->user = user;
  return Status::kOk;
}

Status Manager::destroy(Time now, Id id) {
  if (Listener* listener = listeners_.find(id)) {
    listeners_.remove(*listener);
    assert_consistent();
    return Status::kOk;
  }
  Record* found = consumers(id);
  if (found == nullptr) return Status::kNoSuchId;
  Record& record = *found;
  remember(record);
  switch (record.state) {
    case State::kReqSent:
      send(record, rej_of(record, RejectReason::kTimeout, {}, {}));
      release(record);
      break;
    case State::kReqReceived:
    case State::kRepReceived:
    case State::kRepSent:
      reject_and_go_on(now, record, rej_of(record, RejectReason::kConsumer, {}, {}));
      break;
    case State::kEstablished:
      begin_disconnection(now, record, {});
      break;
    case State::kSidrReqReceived:
      answer_and_remember(now, record, {.status = SidrStatus::kRejected});
      break;
    case State::kClosed:
    case State::kSidrReqSent:
      release(record);
      break;
    case State::kDreqSent:
    case State::kTimewait:
    case State::kRejected:
    case State::kSidrAnswered:
      break;
  }
  assert_consistent();
  return Status::kOk;
}

}  // namespace dapple::roce::cm
