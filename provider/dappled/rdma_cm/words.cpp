// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/words.hpp"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

namespace dapple::dappled::rdma_cm {

const char* words_of(State state) {
  switch (state) {
    case State::kIdle:
      return "has no address yet";
    case State::kBound:
      return "is bound to an address, and has no destination yet";
    case State::kAddressQuery:
      return "still resolves its address";
    case State::kAddressResolved:
      return "has a resolved address, and no route yet";
    case State::kRouteResolved:
      return "has a resolved route, and is not connected yet";
    case State::kConnect:
      return "connects or is connected";
    case State::kDisconnect:
      return "is disconnected";
    case State::kListen:
      return "listens";
    case State::kRemoved:
      return "has lost its device";
  }
  return "has an unknown state";
}

Text::Text(const Address& address) {
  const auto* bytes = address.gid.data();
  constexpr size_t kMapped = 12;  // the place of an IPv4 address
  char host[INET6_ADDRSTRLEN] = "?";
  if (address.family == AF_INET) {
    inet_ntop(AF_INET, bytes + kMapped, host, sizeof host);
  } else {
    inet_ntop(AF_INET6, bytes, host, sizeof host);
  }
  if (address.port == 0) {
    snprintf(text_, sizeof text_, "%s", host);
  } else {
    snprintf(text_, sizeof text_, address.family == AF_INET ? "%s:%u" : "[%s]:%u", host, address.port);
  }
}

}  // namespace dapple::dappled::rdma_cm
