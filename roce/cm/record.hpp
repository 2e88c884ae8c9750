// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One connection or SIDR exchange, as the manager remembers it.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>

#include "roce/cm/ports.hpp"
#include "roce/host/ports.hpp"

namespace dapple::roce::cm {

enum class State : uint8_t {
  kClosed,  // over; only the consumer still has it
  // The active side.
  kReqSent,
  kRepReceived,
  // The passive side.
  kReqReceived,
  kRepSent,
  // Both.
  kEstablished,
  kDreqSent,
  kTimewait,
  kRejected,  // our REJ is sent again when the message that it answers comes again, and in place of a REP taken back
  // SIDR.
  kSidrReqSent,
  kSidrReqReceived,
  kSidrAnswered,  // our SIDR REP is sent again when the request comes again
};

// Tells whether a record in the state `from` may enter the state `to`. A record ends in every state. A fresh one is
// kClosed, and a restored one enters the state of the record that was saved.
constexpr bool may_follow(State from, State to) {
  constexpr auto is_one_of = [](State state, std::initializer_list<State> states) {
    for (const State each : states) {
      if (each == state) return true;
    }
    return false;
  };
  if (to == State::kClosed) return true;
  switch (from) {
    case State::kClosed:
      return !is_one_of(to, {State::kRejected, State::kSidrAnswered});
    case State::kReqSent:
      return is_one_of(to, {State::kRepReceived, State::kRejected, State::kTimewait});
    case State::kRepReceived:
    case State::kRepSent:
      return is_one_of(to, {State::kEstablished, State::kRejected, State::kTimewait});
    case State::kReqReceived:
      return is_one_of(to, {State::kRepSent, State::kRejected, State::kTimewait});
    case State::kEstablished:
      return is_one_of(to, {State::kDreqSent, State::kTimewait});
    case State::kDreqSent:
      return to == State::kTimewait;
    case State::kRejected:
      // The peer has our REP, which was taken back.
      return to == State::kDreqSent;
    case State::kSidrReqReceived:
      return to == State::kSidrAnswered;
    case State::kTimewait:
    case State::kSidrReqSent:
    case State::kSidrAnswered:
      return false;
  }
  return false;
}

constexpr bool is_of_active_side(State state) {
  return state == State::kReqSent || state == State::kRepReceived || state == State::kSidrReqSent;
}

constexpr bool is_of_passive_side(State state) {
  return state == State::kReqReceived || state == State::kRepSent || state == State::kSidrReqReceived ||
         state == State::kSidrAnswered;
}

constexpr bool is_of_sidr(State state) {
  return state == State::kSidrReqSent || state == State::kSidrReqReceived || state == State::kSidrAnswered;
}

// The manager alone ends these states, so a record in one of them has a deadline.
constexpr bool has_deadline(State state) {
  return state == State::kDreqSent || state == State::kTimewait || state == State::kRejected ||
         state == State::kSidrReqSent || state == State::kSidrAnswered;
}

// The manager waits for a message and repeats its own. A restored handshake does not go on, so it has no deadline.
constexpr bool may_have_deadline(State state) {
  return has_deadline(state) || state == State::kReqSent || state == State::kRepSent;
}

// Waiting for the consumer, on behalf of a listener.
constexpr bool is_pending(State state) {
  return state == State::kReqReceived || state == State::kSidrReqReceived;
}

// The peer has not shown that it receives our datagrams: its address may be a forged one.
constexpr bool is_unconfirmed(State state) {
  return state == State::kRepSent;
}

// The table's indexes.
enum KeyKind : uint8_t { kByLocalId, kByRemoteId, kByRemoteQpn, kKeyKinds };

struct Record {
  struct Links {
    Record* older = nullptr;
    Record* newer = nullptr;
  };

  Id id = kNoId;
  State state = State::kClosed;
  bool owned = false;  // a consumer has the id
  bool active = false;
  bool sidr = false;
  bool ended = false;      // by the consumer itself, or its end was reported: no more events
  bool withdrawn = false;  // our REP was taken back
  uint64_t user = 0;
  Id listener = kNoId;

  Path path;
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  uint64_t remote_guid = 0;
  uint32_t local_qpn = 0;
  uint32_t remote_qpn = 0;
  uint64_t transaction = 0;
  uint64_t service_id = 0;  // of a SIDR REQ

  uint8_t max_retries = 0;
  uint8_t retries_left = 0;
  uint8_t service_timeout = 0;  // of our MRA; 0 before the first
  bool prolonged = false;       // by the peer's MRA, since the last sending
  Time period = 0;              // between two sendings of a message
  Time lifetime = 0;            // the ways of two packets; also the time in kTimewait
  Time hold = 0;                // the time for which a rejection or a SIDR reply is remembered
  Mad message{};                // sent last, if it may have to be sent again

  // The table's.
  std::array<uint64_t, kKeyKinds> hash{};
  std::array<Record*, kKeyKinds> chained{};
  std::array<bool, kKeyKinds> indexed{};
  Time deadline = kNever;
  uint32_t timer_at = 0;  // in the heap, from 1; 0 for none
  Record* next_free = nullptr;
  // The lists' (record_list.hpp).
  Links among_unconfirmed;
  Links among_listeners;
  Links among_remembered;

  // Asserts the conditions that hold between two calls of the manager.
  void assert_consistent() const {
    assert(id >> 32 != 0);
    assert(state == State::kClosed || sidr == is_of_sidr(state));
    assert(!is_of_active_side(state) || active);
    assert(!is_of_passive_side(state) || !active);
    assert(!has_deadline(state) || deadline != kNever);
    assert(may_have_deadline(state) || deadline == kNever);
    assert((timer_at != 0) == (deadline != kNever));
    assert(retries_left <= max_retries);
    // A closed record belongs to its consumer, and no message finds it.
    assert(state != State::kClosed || owned);
    assert(indexed[kByLocalId] == (state != State::kClosed));
    assert(!indexed[kByLocalId] || local_id != 0);
    assert(!withdrawn || state == State::kRejected || state == State::kClosed);
  }
};

}  // namespace dapple::roce::cm
