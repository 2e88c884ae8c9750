// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/ids/id_state.hpp"

#include "provider/dappled/rdma_cm/ids/id_table.hpp"
#include "provider/protocol/messages.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

bool is_family(uint16_t family, bool may_be_none) {
  return family == AF_INET || family == AF_INET6 || (may_be_none && family == 0);
}

bool is_event(const UnreadEvent& event) {
  return event.kind <= static_cast<uint8_t>(EventKind::kInternal);
}

bool has_known_events(const IdState& id) {
  if (id.unread_count > IdState::kMaxUnread || !is_event(id.handed)) return false;
  for (uint8_t i = 0; i < id.unread_count; i++) {
    if (!is_event(id.unread[i])) return false;
  }
  return true;
}

// Tells whether the exchange of messages belongs to the state. An id whose device has gone keeps the exchange that it
// had.
bool fits(State state, Exchange exchange) {
  switch (state) {
    case State::kConnect:
      return exchange != Exchange::kNone;
    case State::kDisconnect:
      return exchange == Exchange::kOver;
    case State::kRemoved:
      return true;
    default:
      return exchange == Exchange::kNone;
  }
}

bool needs_device(State state) {
  return state == State::kAddressResolved || state == State::kRouteResolved || state == State::kConnect ||
         state == State::kDisconnect;
}

bool may_have_connection(State state) {
  return state == State::kListen || state == State::kConnect || state == State::kDisconnect || state == State::kRemoved;
}

}  // namespace

bool is_possible(const IdState& id) {
  if (id.number >= IdTable::kNumbers || id.state > State::kRemoved || id.exchange > Exchange::kOver) return false;
  const bool bound = id.state != State::kIdle;
  if (!is_family(id.source.family, !bound) || !is_family(id.destination.family, !bound)) return false;
  if (id.has_port != 0 && (!bound || id.source.port == 0)) return false;
  if (id.gid_index >= soft::kMaxGids || id.backlog > IdState::kMaxBacklog) return false;
  if (!has_known_events(id) || !fits(id.state, id.exchange)) return false;
  if (!bound && id.device != 0) return false;
  if (needs_device(id.state) && id.device == 0) return false;
  if (id.state == State::kRouteResolved && id.route.known == 0) return false;
  // A listener shares its port with nobody.
  if (id.state == State::kListen && (id.has_port == 0 || id.reuse_address != 0)) return false;
  return id.port_space == RDMA_PS_TCP || id.port_space == RDMA_PS_UDP || id.port_space == RDMA_PS_IPOIB ||
         id.port_space == RDMA_PS_IB;
}

void assert_consistent([[maybe_unused]] const CmId& id) {
  assert(is_possible(id));
  assert(id.channel != nullptr && id.key % IdTable::kNumbers == id.number);
  assert(may_have_connection(id.state) || id.connection == cm::kNoId);
  assert(id.state != State::kListen || id.connection != cm::kNoId);
  // A restored handshake, or one that failed at once, has ended without a connection.
  assert(id.state != State::kConnect || id.exchange == Exchange::kOver || id.connection != cm::kNoId);
  assert((id.timer_at != 0) == (id.state == State::kAddressQuery));
  assert(id.memberships.size() == 0 || id.is_datagram());
  // The next dappled would hand a request to a program that has not read its event.
  assert(!id.unheard || (id.journal_index == CmId::kNowhere && id.uid == 0 && id.exchange != Exchange::kNone));
  assert(!id.unsure || !id.is_datagram());
  assert(id.journal_index == CmId::kNowhere ||
         (id.journal_index < id.channel->journaled_count && id.channel->journaled[id.journal_index] == &id));
}

void assert_consistent([[maybe_unused]] const Channel& channel) {
  assert(channel.unsent <= channel.events.size());
  assert(channel.journaled_count <= channel.journaled_room && channel.journaled_count <= channel.ids.size());
  assert((channel.journaled == nullptr) == (channel.journaled_room == 0));
}

}  // namespace dapple::dappled::rdma_cm
