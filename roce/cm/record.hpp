// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One connection or SIDR exchange, as the manager remembers it.
#pragma once

#include <array>
#include <cstdint>

#include "roce/cm/ports.hpp"
#include "roce/ports.hpp"

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
};

}  // namespace dapple::roce::cm
