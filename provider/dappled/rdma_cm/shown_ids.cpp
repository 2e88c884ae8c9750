// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ids that `rdma resource` shows.
#include <algorithm>

#include "provider/dappled/rdma_cm/channel_server.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

// The kernel's enum rdma_cm_state, which also numbers the query of a route.
uint8_t kernels_number(State state) {
  switch (state) {
    case State::kIdle:
      return 0;
    case State::kAddressQuery:
      return 1;
    case State::kAddressResolved:
      return 2;
    case State::kRouteResolved:
      return 4;
    case State::kConnect:
      return 5;
    case State::kDisconnect:
      return 6;
    case State::kBound:
      return 7;
    case State::kListen:
      return 8;
    case State::kRemoved:
      return 9;
  }
  return 0;
}

// The kernel gives a listener without an address a part on each device.
bool is_on(const CmId& id, uint32_t device) {
  return id.device == device || (id.device == 0 && id.state == State::kListen);
}

soft::ShownCmId shown(const CmId& id, uint32_t process) {
  soft::ShownCmId row = {.key = id.key,
                         .number = id.number,
                         .process = process,
                         .qpn = id.qpn,
                         .port_space = id.port_space,
                         .qp_type = id.qp_type,
                         .state = kernels_number(id.state),
                         .source = {},
                         .destination = {}};
  write_address(id.source, row.source);
  write_address(id.destination, row.destination);
  return row;
}

}  // namespace

uint32_t ChannelServer::count_ids(uint32_t device) const {
  uint32_t count = 0;
  for (const Channel* channel = list_.first(); channel != nullptr; channel = channel->newer) {
    for (const CmId* id = channel->ids.first(); id != nullptr; id = id->newer) count += is_on(*id, device) ? 1 : 0;
  }
  return count;
}

void ChannelServer::list_ids(const soft::CmIdsRequest& request, soft::CmIdsReply& reply) const {
  soft::ShownCmId* const begin = reply.ids;
  for (const Channel* channel = list_.first(); channel != nullptr; channel = channel->newer) {
    const uint32_t process = static_cast<const OpenChannel*>(channel)->program.process;
    for (const CmId* id = channel->ids.first(); id != nullptr; id = id->newer) {
      if (id->key <= request.after || !is_on(*id, request.device)) continue;
      // The lowest keys, in order.
      soft::ShownCmId* end = begin + reply.count;
      soft::ShownCmId* at = std::find_if(begin, end, [&](const soft::ShownCmId& other) { return other.key > id->key; });
      if (reply.count == soft::CmIdsReply::kIds) {
        reply.more = 1;
        if (at == end) continue;
        end--;
      } else {
        reply.count++;
      }
      std::move_backward(at, end, end + 1);
      *at = shown(*id, process);
    }
  }
}

}  // namespace dapple::dappled::rdma_cm
