// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Ids of a dappled that has died.
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include <algorithm>
#include <new>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/journal.hpp"
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

// Longer than a program waits for an answer.
constexpr Time kRepetition = 15'000'000'000;

// The event's data were lost with the dappled that died.
bool had_data(const IdState& id, EventKind kind) {
  return kind == EventKind::kConnectResponse || (kind == EventKind::kEstablished && id.is_datagram());
}

}  // namespace

void Service::restore(Time now, Channel& channel, std::span<const std::byte> bytes, Restoration& outcome) {
  JournalEntry entry;
  if (bytes.size() < sizeof entry) return;
  memcpy(static_cast<void*>(&entry), bytes.data(), sizeof entry);
  if (entry.mark != kJournalMark || !is_possible(entry.id)) return;
  // A second copy of an id that was moved in the journal.
  if (ids_.find(channel, entry.id.number) != nullptr) return;
  CmId* id = new (std::nothrow) CmId;
  const State state = entry.id.state;
  // A listener is only bound until it listens again.
  if (state == State::kListen) entry.id.state = State::kBound;
  if (id != nullptr) {
    static_cast<IdState&>(*id) = entry.id;
    id->channel = &channel;
  }
  if (id == nullptr || !ids_.add(*id)) {
    delete id;
    outcome.error = ENOMEM;
    return;
  }
  // New ids stay away from those of the dead dappled that are still to come.
  ids_.keep_away(id->number);
  channel.ids.add(*id);
  channel.repeats_until = now + kRepetition;
  if (!resume(now, *id, state, entry.connection, outcome) || !resume_memberships(*id, entry)) {
    // The caller closes the channel, because an id is incomplete.
    outcome.error = ENOMEM;
    return;
  }
  note(*id);
  write_journals();
  rdma_cm::assert_consistent(channel);
  assert_consistent();
}

// False without memory for the event. No program waits for an event of an id that it does not know.
bool Service::tell(CmId& id, EventKind kind, int status) {
  return add_event(id, kind, status) != nullptr || id.uid == 0;
}

bool Service::resume(Time now, CmId& id, State state, const cm::Saved& saved, Restoration& outcome) {
  UnreadEvent unread[IdState::kMaxUnread];
  const uint8_t unread_count = id.unread_count;
  std::copy_n(id.unread, unread_count, unread);
  id.unread_count = 0;
  const bool had_port = id.has_port != 0;
  id.has_port = 0;
  // A listener shares its port with nobody, but the others may share with each other as before. Another program may
  // have got the port: then a listener ends, and an id that is only bound learns of it when it is to listen. The port
  // of an id that connects is only a name.
  if (had_port) ports_.bind(id, 0);
  bool removed = false;
  if (id.device != 0) {
    const uint32_t device = id.device;
    // The device's addresses may have changed meanwhile.
    if (!attach(id, id.source)) {
      id.device = device;
      removed = world_.devices().find(device) == nullptr && state != State::kRemoved;
    }
  }
  if (!resume_events(id, {unread, unread_count})) return false;
  if (removed) {
    // As in refresh_devices().
    enter(id, State::kRemoved);
    return tell(id, EventKind::kDeviceRemoval);
  }
  switch (state) {
    case State::kListen:
      return resume_listening(id, outcome);
    case State::kAddressQuery:
      // The query starts again. Its time-out still ends at give_up_at.
      resolving_.set(id, now);
      return true;
    case State::kConnect:
    case State::kDisconnect:
      return resume_connection(now, id, saved);
    default:
      return true;
  }
}

bool Service::resume_events(CmId& id, std::span<const UnreadEvent> unread) {
  bool whole = true;
  for (const UnreadEvent& event : unread) {
    const auto kind = static_cast<EventKind>(event.kind);
    if (event.ticket != 0 && is_taken(event.ticket, id.channel->taken)) {
      id.events_reported++;
    } else if (!had_data(id, kind)) {
      whole &= tell(id, kind, event.status);
    } else if (id.is_datagram()) {
      whole &= tell(id, EventKind::kUnreachable, -ECONNRESET);
    }
  }
  return whole;
}

// A listener that cannot listen again is of no use any more, as after the removal of its device, and its program must
// destroy it.
bool Service::resume_listening(CmId& id, Restoration& outcome) {
  // Requests that no program had read were lost with the dappled that died.
  id.backlog = std::clamp<uint32_t>(id.backlog, 1, kMaxBacklog);
  id.whole_backlog = id.backlog;
  const int error = start_listening(id);
  if (error == 0) return true;
  outcome.lost_listeners++;
  outcome.lost_port = id.source.port;
  id.connection = cm::kNoId;
  enter(id, State::kRemoved);
  return tell(id, EventKind::kDeviceRemoval, -error);
}

bool Service::resume_memberships(CmId& id, const JournalEntry& entry) {
  // Only datagrams have groups.
  const uint32_t count = id.is_datagram() ? std::min(entry.membership_count, JournalEntry::kMaxMemberships) : 0;
  for (uint32_t i = 0; i < count; i++) {
    const SavedMembership& saved = entry.memberships[i];
    Address group;
    group.family = saved.family;
    group.gid = saved.group;
    if (group.family != AF_INET && group.family != AF_INET6) continue;
    Membership* membership =
        membership_count_ < kMaxMemberships ? add_membership(id, saved.number, saved.uid, group) : nullptr;
    if (membership == nullptr) return false;
    membership->events_reported = saved.events_reported;
    membership->token = saved.token;
    membership->unread = saved.unread != 0;
    if (membership->unread) report_join(*membership);
  }
  return true;
}

bool Service::resume_connection(Time now, CmId& id, const cm::Saved& saved) {
  const Exchange exchange = id.exchange;
  if (exchange == Exchange::kOver && id.state == State::kConnect) return true;
  const bool goes_on = exchange == Exchange::kEstablished || id.state == State::kDisconnect;
  cm::Id connection = cm::kNoId;
  cm::Status status = cm::Status::kUnsupported;
  if (!id.is_datagram()) {
    cm::Saved here = saved;
    // The journal's GUID is not trusted.
    here.path.ca_guid = path_of(id).ca_guid;
    here.path.device = id.device;
    status = manager_->restore(now, id.key, here, connection);
    if (status != cm::Status::kOk) connection = cm::kNoId;
  }
  if (goes_on && connection != cm::kNoId) {
    assert(id.connection == cm::kNoId);
    id.connection = connection;
    id.unsure = find_gid(world_.devices(), saved.path.remote, 0).device != nullptr;
    if (id.unsure) doubts_end_ = now + kArrival;
    return true;
  }
  // The connection does not continue: the peer and the program are informed now.
  if (connection != cm::kNoId) manager_->destroy(now, connection);
  if (exchange != Exchange::kOver) enter(id, Exchange::kOver);
  if (id.state == State::kDisconnect) {
    // A time wait that was refused has not ended here. One that had ended is no state that can be restored.
    const bool waited = status == cm::Status::kInUse || status == cm::Status::kNoRoom;
    return !waited || tell(id, EventKind::kTimewaitExit);
  }
  if (exchange == Exchange::kEstablished) {
    enter(id, State::kDisconnect);
    return tell(id, EventKind::kDisconnected, -ECONNRESET);
  }
  if (exchange == Exchange::kReqSent) return tell(id, EventKind::kUnreachable, -ECONNRESET);
  return tell(id, EventKind::kConnectError, -ECONNRESET);
}

// Hands over the event that was asked for with this token. Its data, if any, and the handshake that it reported were
// lost with the dappled that handed it over.
bool Service::hand_again(Call& call, int& error) {
  CmId* id = call.channel.ids.first();
  while (id != nullptr && id->handed_token != call.token) id = id->newer;
  if (id == nullptr) return false;
  const auto kind = static_cast<EventKind>(id->handed.kind);
  if (kind != EventKind::kConnectRequest && kind != EventKind::kMulticastJoin && !is_written(kind) &&
      !had_data(*id, kind)) {
    rdma_ucm_event_resp response = {};
    response.uid = id->uid;
    response.id = id->number;
    response.event = id->handed.kind;
    response.status = static_cast<uint32_t>(int{id->handed.status});
    error = write(call, response, 0);
    return true;
  }
  error = EAGAIN;
  note(*id);
  id->events_reported--;
  id->handed_token = 0;
  if (kind == EventKind::kConnectRequest) {
    CmId* request = ids_.find(*id->channel, id->handed_number);
    Removed removed;
    if (request != nullptr && request->uid == 0) {
      destroy(call.now, *request, removed);
    }
  } else if (kind == EventKind::kMulticastJoin) {
    Membership* membership = id->memberships.first();
    while (membership != nullptr && membership->number != id->handed_number) membership = membership->newer;
    if (membership == nullptr) return true;
    membership->events_reported--;
    membership->unread = true;
    report_join(*membership);
  } else if (id->is_datagram() && !is_written(kind)) {
    add_event(*id, EventKind::kUnreachable, -ECONNRESET);
  }
  return true;
}

// The other end of such a connection is an id of this dappled, too, unless its program died with the earlier dappled,
// or its handshake ended before this end was restored. In these cases nothing else reports the end.
void Service::end_doubts(Time now) {
  doubts_end_ = roce::kNever;
  ids_.visit([&](CmId& id) {
    if (!id.unsure) return;
    id.unsure = false;
    if (id.exchange == Exchange::kEstablished && !manager_->has_both_ends(id.connection)) {
      manager_->disconnect(now, id.connection, {});
    }
  });
}

}  // namespace dapple::dappled::rdma_cm
