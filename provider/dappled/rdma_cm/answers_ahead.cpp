// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Answers the questions that librdmacm asks as soon as it has an event.
#include <infiniband/verbs.h>

#include <initializer_list>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/protocol/cm_messages.hpp"

namespace dapple::dappled::rdma_cm {

bool Service::asks_next(EventKind kind) {
  return kind == EventKind::kAddrResolved || kind == EventKind::kRouteResolved || kind == EventKind::kConnectRequest ||
         kind == EventKind::kConnectResponse;
}

template <class Command>
size_t Service::answer_one(Time now, Channel& channel, const Command& command, uint16_t number, uint8_t qp_state,
                           std::span<uint8_t> room) {
  constexpr size_t kFront = sizeof(soft::CmAnswerAhead);
  const bool route = number == RDMA_USER_CM_CMD_QUERY_ROUTE;
  // An answer must be whole.
  if (room.size() < kFront + soft::cm_aligned(route ? sizeof(rdma_ucm_query_route_resp) : sizeof(ib_uverbs_qp_attr))) {
    return 0;
  }
  Answer answer{.response = room.subspan(kFront)};
  const auto bytes = std::span(reinterpret_cast<const uint8_t*>(&command), sizeof command);
  Call call{now, channel, nullptr, bytes, {}, answer.response.size(), answer, 0};
  if ((route ? query_route(call) : init_qp_attr(call)) != 0) return 0;
  const size_t size = kFront + soft::cm_aligned(answer.length);
  assert(answer.length > 0 && size <= room.size());
  const soft::CmAnswerAhead front{
      .id = command.id, .command = number, .qp_state = qp_state, .length = static_cast<uint32_t>(answer.length)};
  memcpy(room.data(), &front, sizeof front);
  std::fill(room.begin() + static_cast<std::ptrdiff_t>(kFront + answer.length),
            room.begin() + static_cast<std::ptrdiff_t>(size), uint8_t{0});
  return size;
}

size_t Service::answer_ahead(Time now, Channel& channel, uint32_t number, std::span<uint8_t> room) {
  const CmId* id = ids_.find(channel, number);
  if (id == nullptr) return 0;
  size_t size = 0;
  const auto left = [&] { return room.subspan(size); };
  // librdmacm does not ask for the route again when the connection's reply has come.
  if (id->exchange != Exchange::kRepReceived) {
    rdma_ucm_query command = {};
    command.id = number;
    size += answer_one(now, channel, command, RDMA_USER_CM_CMD_QUERY_ROUTE, 0, left());
  }
  // INIT_QP_ATTR sets the Q_Key of a datagram id, so dappled does not answer it ahead.
  if (id->is_datagram() || id->state == State::kAddressResolved) return size;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (state != IBV_QPS_INIT && id->state != State::kConnect) break;
    rdma_ucm_init_qp_attr command = {};
    command.id = number;
    command.qp_state = state;
    size += answer_one(now, channel, command, RDMA_USER_CM_CMD_INIT_QP_ATTR, static_cast<uint8_t>(state), left());
  }
  return size;
}

}  // namespace dapple::dappled::rdma_cm
