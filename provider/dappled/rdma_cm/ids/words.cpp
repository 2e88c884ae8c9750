// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/ids/words.hpp"

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

}  // namespace dapple::dappled::rdma_cm
