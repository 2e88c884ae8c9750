// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <array>

#include "provider/protocol/cm_messages.hpp"
#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple;
using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

constexpr uint32_t kRoute = 1;  // a bit of a set of answers; INIT_QP_ATTR has a bit for each state
constexpr uint32_t bit(ibv_qp_state state) {
  return 2U << state;
}
constexpr uint32_t kFirst = bit(IBV_QPS_INIT);
constexpr uint32_t kAll = kFirst | bit(IBV_QPS_RTR) | bit(IBV_QPS_RTS);

// Compares each answer in the bytes with the reply to its question. Returns the set of the answers.
uint32_t check(Host& host, Channel& channel, uint32_t id, std::span<const uint8_t> bytes) {
  uint32_t set = 0;
  while (!bytes.empty()) {
    soft::CmAnswerAhead front;
    assert_true(bytes.size() >= sizeof front);
    memcpy(&front, bytes.data(), sizeof front);
    bytes = bytes.subspan(sizeof front);
    assert_int_equal(front.id, id);
    assert_true(soft::cm_aligned(front.length) <= bytes.size());
    if (front.command == RDMA_USER_CM_CMD_QUERY_ROUTE) {
      rdma_ucm_query_route_resp route;
      assert_int_equal(host.query(channel, id, route), 0);
      assert_int_equal(front.length, sizeof route);
      assert_memory_equal(bytes.data(), &route, sizeof route);
      set |= kRoute;
    } else {
      ib_uverbs_qp_attr attributes;
      const auto state = static_cast<ibv_qp_state>(front.qp_state);
      assert_int_equal(front.command, RDMA_USER_CM_CMD_INIT_QP_ATTR);
      assert_int_equal(host.attributes(channel, id, state, attributes), 0);
      assert_int_equal(front.length, sizeof attributes);
      assert_memory_equal(bytes.data(), &attributes, sizeof attributes);
      set |= bit(state);
    }
    bytes = bytes.subspan(soft::cm_aligned(front.length));
  }
  return set;
}

uint32_t answers(Host& host, Channel& channel) {
  std::array<uint8_t, soft::kCmReplySize - sizeof(rdma_ucm_event_resp)> room;
  const uint32_t id = host.ahead;
  if (id == 0) return 0;
  return check(host, channel, id, std::span(room).first(host.service->answer_ahead(host.now, channel, id, room)));
}

void answer_ahead__of_a_connections_events__is_what_a_question_gets(void** state) {
  Pair& pair = pair_of(state);
  Host& client = pair.client;
  pair.listen();
  pair.connecting = client.create(pair.active, RDMA_PS_TCP, 11);
  assert_int_equal(answers(client, pair.active), 0);
  assert_int_equal(client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  client.event(pair.active, EventKind::kAddrResolved);
  assert_int_equal(answers(client, pair.active), kRoute);
  assert_int_equal(client.resolve_route(pair.active, pair.connecting), 0);
  client.event(pair.active, EventKind::kRouteResolved);
  assert_int_equal(answers(client, pair.active), kRoute | kFirst);
  assert_int_equal(client.connect(pair.active, pair.connecting, parameters(0x10012)), 0);
  pair.carry();
  pair.accepted = pair.server.event(pair.passive, EventKind::kConnectRequest).id;
  assert_int_equal(pair.server.ahead, pair.accepted);
  assert_int_equal(answers(pair.server, pair.passive), kRoute | kAll);
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(0x20034)), 0);
  pair.carry();
  client.event(pair.active, EventKind::kConnectResponse);
  assert_int_equal(answers(client, pair.active), kAll);
  rdma_ucm_conn_param none = {};
  assert_int_equal(client.accept(pair.active, pair.connecting, 0, none), 0);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kEstablished);
  assert_int_equal(answers(pair.server, pair.passive), 0);
  pair.finish();
}

void answer_ahead__of_datagrams__leaves_the_qkey_open(void** state) {
  Pair& pair = pair_of(state);
  pair.listen(RDMA_PS_UDP);
  pair.connecting = pair.client.create(pair.active, RDMA_PS_UDP, 11);
  assert_int_equal(pair.client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  pair.client.event(pair.active, EventKind::kAddrResolved);
  assert_int_equal(pair.client.resolve_route(pair.active, pair.connecting), 0);
  pair.client.event(pair.active, EventKind::kRouteResolved);
  assert_int_equal(answers(pair.client, pair.active), kRoute);
  pair.finish();
}

void answer_ahead__without_room_or_id__is_none(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  std::array<uint8_t, 300> room;
  Service& service = *pair.server.service;
  for (size_t size = 0; size < room.size(); size++) {
    const size_t length =
        service.answer_ahead(pair.server.now, pair.passive, pair.accepted, std::span(room).first(size));
    assert_true(length <= size);
    check(pair.server, pair.passive, pair.accepted, std::span(room).first(length));
  }
  assert_int_equal(service.answer_ahead(pair.server.now, pair.passive, pair.accepted + 1000, room), 0);
  Channel other;
  assert_int_equal(service.answer_ahead(pair.server.now, other, pair.accepted, room), 0);
  pair.finish();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      RDMA_CM_TEST(answer_ahead__of_a_connections_events__is_what_a_question_gets),
      RDMA_CM_TEST(answer_ahead__of_datagrams__leaves_the_qkey_open),
      RDMA_CM_TEST(answer_ahead__without_room_or_id__is_none),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
