// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The states of an endpoint, and the order in which they follow each other. The Ep owns its state. Its Connection, its
// Datagrams, service points and connection requests change it, by Ep::enter().
#pragma once

#include <cstdint>

namespace dapple::udapl {

enum class EpState : uint8_t {
#define EP_STATE(NAME, SUBTYPE, DAT) NAME,
#include "udapl/api/names.def"
  kDatagrams,  // our own state, which DAT shows as kConnected; it keeps the data path of connections away from datagram
               // endpoints
};

// The unconfigured states are never entered; they are how an endpoint without a PZ or a connect EVD reports its state.
constexpr bool may_follow(EpState from, EpState to) {
  using enum EpState;
  switch (to) {
    case kUnconnected:
      // An exchange of datagrams may come to nothing; a connection that fails leads to DISCONNECTED.
      return from == kReserved || from == kPassiveConnectionPending || from == kTentativeConnectionPending ||
             from == kActiveConnectionPending || from == kCompletionPending || from == kDisconnected;
    case kReserved:
    case kTentativeConnectionPending:
      return from == kUnconnected;
    case kPassiveConnectionPending:
      return from == kReserved;
    case kActiveConnectionPending:
      return from == kUnconnected || from == kCompletionPending;  // the second: several exchanges of datagrams
    case kCompletionPending:
      return from == kUnconnected || from == kActiveConnectionPending;
    case kConnected:
    case kDatagrams:
      return from == kActiveConnectionPending || from == kCompletionPending;
    case kDisconnectPending:
      return from == kConnected;
    case kDisconnected:
      return true;  // an endpoint may be freed in any state
    default:
      return false;
  }
}

}  // namespace dapple::udapl
