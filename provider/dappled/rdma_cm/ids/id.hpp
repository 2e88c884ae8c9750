// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An rdma_cm_id as the kernel has it, the channel that it belongs to, and the events that wait there. The service makes
// and deletes ids, events and memberships. A channel belongs to the service's caller.
#pragma once

#include <rdma/rdma_user_cm.h>

#include <cstdint>

#include "provider/dappled/rdma_cm/ids/address.hpp"
#include "provider/dappled/rdma_cm/ids/list.hpp"
#include "provider/dappled/rdma_cm/ids/neighbour.hpp"
#include "roce/cm/ports.hpp"
#include "roce/host/ports.hpp"

namespace dapple::dappled::rdma_cm {

namespace cm = roce::cm;
using roce::Time;

// The numbers of librdmacm's enum rdma_cm_event_type, whose header conflicts with the kernel's.
enum class EventKind : uint32_t {
  kAddrResolved,
  kAddrError,
  kRouteResolved,
  kRouteError,
  kConnectRequest,
  kConnectResponse,
  kConnectError,
  kUnreachable,
  kRejected,
  kEstablished,
  kDisconnected,
  kDeviceRemoval,
  kMulticastJoin,
  kMulticastError,
  kAddrChange,
  kTimewaitExit,
  kAddrinfoResolved,
  kAddrinfoError,
  kUser,
  kInternal,
};

// Programs write such an event, with an argument.
constexpr bool is_written(EventKind kind) {
  return kind == EventKind::kUser || kind == EventKind::kInternal;
}

// The states of the kernel's rdma_cm, without the one for a query of a route: routes are resolved at once. Only enter()
// changes an id's state and exchange (id_state.hpp).
enum class State : uint8_t {
  kIdle,
  kBound,
  kAddressQuery,
  kAddressResolved,
  kRouteResolved,
  kConnect,
  kDisconnect,
  kListen,
  kRemoved
};

// The states of the kernel's ib_cm that matter here.
enum class Exchange : uint8_t { kNone, kReqSent, kReqReceived, kRepReceived, kRepSent, kEstablished, kOver };

struct CmId;
struct Channel;

struct Route {
  uint8_t known = 0;
  Gid source{};
  Gid destination{};
  uint8_t mtu = 0;  // enum ibv_mtu
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;
  uint8_t lifetime = 0;  // of packets: 4.096 µs * 2^n
};

// A multicast group that an id has joined.
struct Membership {
  Membership* older = nullptr;
  Membership* newer = nullptr;
  uint32_t number = 0;
  uint32_t events_reported = 0;
  uint32_t token = 0;  // of the command that made it
  uint64_t uid = 0;
  CmId* id = nullptr;
  bool unread = true;  // its event waits
  Address group;
};

struct Event {
  Event* older = nullptr;
  Event* newer = nullptr;
  CmId* id = nullptr;  // the id whose events_reported counts this event
  // A connection request's new id, or the group that an event is about.
  CmId* request = nullptr;
  Membership* membership = nullptr;
  rdma_ucm_event_resp response = {};
  // The ticket of the message that contains the event (soft::CmEvent). 0: the message is one byte, and its reader asks.
  uint32_t ticket = 0;
  bool sent = false;
};

// An event that has no data of its own.
struct UnreadEvent {
  uint8_t kind = 0;  // EventKind
  int16_t status = 0;
  uint32_t ticket = 0;  // as the event's
};

// The part of an id that its channel's journal keeps (journal.hpp): plain bytes without bool, because a program may
// damage them.
struct IdState {
  uint64_t uid = 0;  // 0: a request that nobody has accepted; only its listener has events then
  uint32_t number = 0;
  uint32_t events_reported = 0;
  uint16_t port_space = 0;
  uint8_t qp_type = 0;  // enum ibv_qp_type
  State state = State::kIdle;
  Exchange exchange = Exchange::kNone;
  uint8_t has_port = 0;

  uint8_t reuse_address = 0;
  uint8_t one_family = 0;
  uint8_t one_family_set = 0;
  uint8_t has_timeout = 0;
  uint8_t timeout = 0;
  uint8_t traffic_class = 0;

  Address source;
  Address destination;
  Time give_up_at = 0;  // of kAddressQuery
  uint32_t device = 0;  // its index; 0: none yet
  uint32_t gid_index = 0;
  Route route;

  static constexpr uint32_t kMaxBacklog = 1024;
  uint32_t backlog = 0;  // connection requests that may still wait for their reader
  uint32_t qpn = 0;
  uint8_t srq = 0;
  uint32_t qkey = 0;
  uint32_t psn = 0;  // the first one that the peer sends

  uint32_t remote_qpn = 0;
  uint32_t remote_psn = 0;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t ack_timeout = 0;

  // The answers to these may have got lost with a dappled: the last command that was carried out, and the last request
  // for an event. `handed` is that event, and `handed_number` is the number of its new id or group.
  uint32_t last_token = 0;
  uint32_t handed_token = 0;
  uint32_t handed_number = 0;
  UnreadEvent handed;

  // Unread events, without connection requests and events of groups.
  static constexpr uint32_t kMaxUnread = 6;
  uint8_t unread_count = 0;
  UnreadEvent unread[kMaxUnread];

  bool is_datagram() const;
};

struct CmId : IdState {
  static constexpr uint32_t kNowhere = UINT32_MAX;

  CmId* older = nullptr;  // of the channel
  CmId* newer = nullptr;
  CmId* same_bucket = nullptr;
  CmId* same_port = nullptr;
  Channel* channel = nullptr;
  uint64_t key = 0;  // unique among all ids
  cm::Id connection = cm::kNoId;
  List<Membership> memberships;

  // In kAddressQuery: when to look again, and which neighbour was asked.
  Time deadline = roce::kNever;
  uint32_t timer_at = 0;
  Neighbour neighbour;
  CmId* next_due = nullptr;

  uint32_t journal_index = kNowhere;
  uint32_t whole_backlog = 0;  // `backlog` when no request waits
  bool unheard = false;        // a request whose event nobody has read: not in the journal
  Gid sender{};                // of a request
  bool changed = false;        // since it was last written to the journal
  bool unsure = false;         // it comes from a journal, and the other end is on this host, too
  CmId* next_changed = nullptr;
};

struct Channel {
  Channel() = default;
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Channel* older = nullptr;
  Channel* newer = nullptr;
  List<CmId> ids;
  List<Event> events;
  uint32_t unsent = 0;        // the number of events, the newest, whose messages have not been sent
  bool hands_events = false;  // its processes read events from messages
  uint32_t last_ticket = 0;
  uint32_t taken = 0;  // the newest ticket that a process is known to have taken
  // Until this time, commands may come that the last dappled has already carried out.
  roce::Time repeats_until = 0;
  // The ids in the journal, by place.
  CmId** journaled = nullptr;
  uint32_t journaled_count = 0;
  uint32_t journaled_room = 0;
};

}  // namespace dapple::dappled::rdma_cm
