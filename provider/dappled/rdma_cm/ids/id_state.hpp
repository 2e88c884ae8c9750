// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The states of an id: which one may follow which, and what each one means for the other members. Only enter() changes
// a state. A journal that its program has damaged must not bring an impossible id, so is_possible() checks one that is
// read, and assert_consistent() asserts the same for each one that is written.
#pragma once

#include <cassert>

#include "provider/dappled/rdma_cm/ids/id.hpp"

namespace dapple::dappled::rdma_cm {

// The device of an id may disappear in every state that may have a device.
constexpr bool may_follow(State from, State to) {
  if (to == State::kRemoved) return from != State::kIdle && from != State::kRemoved;
  switch (from) {
    case State::kIdle:
      // A peer's request makes an id in kConnect.
      return to == State::kBound || to == State::kConnect;
    case State::kBound:
      return to == State::kAddressQuery || to == State::kAddressResolved || to == State::kListen;
    case State::kAddressQuery:
      return to == State::kAddressResolved || to == State::kBound;
    case State::kAddressResolved:
      return to == State::kRouteResolved;
    case State::kRouteResolved:
      return to == State::kConnect;
    case State::kConnect:
      return to == State::kDisconnect;
    case State::kDisconnect:
    case State::kListen:
    case State::kRemoved:
      return false;
  }
  return false;
}

constexpr bool may_follow(Exchange from, Exchange to) {
  switch (from) {
    case Exchange::kNone:
      return to == Exchange::kReqSent || to == Exchange::kReqReceived;
    case Exchange::kReqSent:
      return to == Exchange::kRepReceived || to == Exchange::kOver;
    case Exchange::kReqReceived:
      return to == Exchange::kRepSent || to == Exchange::kOver;
    case Exchange::kRepReceived:
    case Exchange::kRepSent:
      return to == Exchange::kEstablished || to == Exchange::kOver;
    case Exchange::kEstablished:
      return to == Exchange::kOver;
    case Exchange::kOver:
      return false;
  }
  return false;
}

inline void enter(CmId& id, State next) {
  assert(may_follow(id.state, next));
  id.state = next;
}

inline void enter(CmId& id, Exchange next) {
  assert(may_follow(id.exchange, next));
  id.exchange = next;
}

// The conditions of the part of an id that its journal keeps.
bool is_possible(const IdState& id);

// Asserts the conditions that hold for an id, and for a channel, between two calls of the service.
void assert_consistent(const CmId& id);
void assert_consistent(const Channel& channel);

}  // namespace dapple::dappled::rdma_cm
