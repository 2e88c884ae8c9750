// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Datagram services by SIDR, and multicast groups.
#include <initializer_list>

#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

constexpr uint32_t kQkey = 0x01234567;

void request(Pair& pair, uint8_t private_data_len = 180) {
  pair.listen(RDMA_PS_UDP);
  pair.resolve(RDMA_PS_UDP);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(0x10001, 1, private_data_len)), 0);
  pair.carry();
}

void connect__datagram_service__gives_its_queue_pair(void** state) {
  Pair& pair = pair_of(state);
  request(pair);
  const auto request = pair.server.event(pair.passive, EventKind::kConnectRequest);
  assert_int_equal(request.param.ud.private_data_len, 180);
  assert_int_equal(request.param.ud.private_data[179], 180);
  pair.accepted = request.id;
  ib_uverbs_qp_attr attributes;
  assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_INIT, attributes), 0);
  assert_int_equal(attributes.qp_attr_mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  assert_int_equal(attributes.qkey, kQkey);
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(0x20002, 7, 136)), 0);
  pair.carry();
  const auto established = pair.client.event(pair.active, EventKind::kEstablished);
  const rdma_ucm_ud_param& ud = established.param.ud;
  assert_int_equal(ud.qp_num, 0x20002);
  assert_int_equal(ud.qkey, kQkey);
  assert_int_equal(ud.private_data_len, 136);
  assert_int_equal(ud.private_data[0], 7);
  assert_int_equal(ud.ah_attr.is_global, 1);
  assert_int_equal(ud.ah_attr.grh.dgid[15], 2);
  assert_int_equal(ud.ah_attr.port_num, 1);
  pair.server.assert_no_event(pair.passive);
  pair.finish();
}

void reject__datagram_request__is_unreachable(void** state) {
  Pair& pair = pair_of(state);
  request(pair, 0);
  rdma_ucm_reject reject = {};
  reject.id = pair.server.event(pair.passive, EventKind::kConnectRequest).id;
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_REJECT, reject), 0);
  pair.carry();
  assert_int_equal(pair.client.event(pair.active, EventKind::kUnreachable).status, 2);
  pair.finish();
}

void connect__nobody_answers__is_unreachable(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve(RDMA_PS_UDP);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  while (pair.active.events.size() == 0) {
    pair.client.out.clear();
    assert_true(pair.wait());
  }
  assert_int_equal(static_cast<int>(pair.client.event(pair.active, EventKind::kUnreachable).status), -ETIMEDOUT);
}

void connect__too_much_private_data__is_refused(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve(RDMA_PS_UDP);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1, 0, 181)), EINVAL);
}

void die__while_waiting__is_unreachable(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve(RDMA_PS_UDP);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.client.die(pair.active);
  pair.client.event(pair.active, EventKind::kUnreachable);
  pair.finish();
}

void die__after_the_answer__the_client_alone_hears_of_it(void** state) {
  Pair& pair = pair_of(state);
  request(pair, 0);
  pair.accepted = pair.server.event(pair.passive, EventKind::kConnectRequest).id;
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(2)), 0);
  pair.carry();
  pair.server.die(pair.passive);
  pair.server.assert_no_event(pair.passive);
  // It had not read the answer, which is lost.
  pair.client.die(pair.active);
  pair.client.event(pair.active, EventKind::kUnreachable);
  pair.client.assert_no_event(pair.active);
  pair.client.die(pair.active);
  pair.client.assert_no_event(pair.active);
  pair.finish();
}

rdma_ucm_join_ip_mcast join_of(uint32_t id, uint8_t last) {
  rdma_ucm_join_ip_mcast join = {};
  join.id = id;
  join.uid = 99;
  join.addr = ipv4(last, 0);
  // 239.0.0.x
  reinterpret_cast<uint8_t*>(&join.addr)[4] = 239;
  return join;
}

void join__group__gives_its_address(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_UDP, 11);
  rdma_ucm_create_id_resp number;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), number), EINVAL);
  assert_int_equal(host.bind(pair.active, id, ipv4(1, 0)), 0);
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), number), 0);
  const auto event = host.event(pair.active, EventKind::kMulticastJoin);
  assert_int_equal(event.uid, 99);
  assert_int_equal(event.id, number.id);
  assert_int_equal(event.param.ud.qp_num, 0xFFFFFF);
  assert_int_equal(event.param.ud.qkey, kQkey);
  assert_int_equal(event.param.ud.ah_attr.grh.dgid[12], 239);
  assert_int_equal(event.param.ud.ah_attr.grh.dgid[15], 5);
  rdma_ucm_destroy_id leave = {};
  leave.id = number.id;
  rdma_ucm_destroy_id_resp left;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, left), 0);
  assert_int_equal(left.events_reported, 1);
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, left), ENOENT);
}

void die__in_groups__stays_in_them(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_UDP, 11);
  assert_int_equal(host.bind(pair.active, id, ipv4(1, 0)), 0);
  rdma_ucm_create_id_resp first, second;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), first), 0);
  host.event(pair.active, EventKind::kMulticastJoin);
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 6), second), 0);
  host.die(pair.active);
  const auto event = host.event(pair.active, EventKind::kMulticastJoin);
  assert_int_equal(event.id, second.id);
  assert_int_equal(event.uid, 99);
  assert_int_equal(event.param.ud.qkey, kQkey);
  assert_int_equal(event.param.ud.ah_attr.grh.dgid[15], 6);
  host.assert_no_event(pair.active);
  host.die(pair.active);
  host.assert_no_event(pair.active);
  for (const uint32_t number : {first.id, second.id}) {
    rdma_ucm_destroy_id leave = {};
    leave.id = number;
    rdma_ucm_destroy_id_resp left;
    assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, left), 0);
    assert_int_equal(left.events_reported, 1);
  }
  pair.finish();
}

// The program has no answer from the first dappled, so the event counts once.
void repeat__join_that_was_handed_over__counts_once(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_UDP, 11);
  assert_int_equal(host.bind(pair.active, id, ipv4(1, 0)), 0);
  rdma_ucm_create_id_resp number;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), number), 0);
  host.token = 9;
  host.event(pair.active, EventKind::kMulticastJoin);
  host.die(pair.active);
  host.assert_no_event(pair.active);
  host.token = 10;
  assert_int_equal(host.event(pair.active, EventKind::kMulticastJoin).id, number.id);
  rdma_ucm_destroy_id leave = {};
  leave.id = number.id;
  rdma_ucm_destroy_id_resp left;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, left), 0);
  assert_int_equal(left.events_reported, 1);
  pair.finish();
}

// The program asks the next dappled, because it has no answer from the first.
void join__repeated__joins_once(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_UDP, 11);
  assert_int_equal(host.bind(pair.active, id, ipv4(1, 0)), 0);
  rdma_ucm_create_id_resp first, again, other;
  host.token = 7;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), first), 0);
  host.die(pair.active);
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), again), 0);
  assert_int_equal(again.id, first.id);
  host.token = 8;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), other), 0);
  assert_int_not_equal(other.id, first.id);
  host.token = 0;
  assert_int_equal(host.event(pair.active, EventKind::kMulticastJoin).id, first.id);
  assert_int_equal(host.event(pair.active, EventKind::kMulticastJoin).id, other.id);
  host.assert_no_event(pair.active);
  pair.finish();
}

void leave__unread_event__goes_along(void** state) {
  Pair& pair = pair_of(state);
  Host& host = pair.client;
  const uint32_t id = host.create(pair.active, RDMA_PS_UDP, 11);
  assert_int_equal(host.bind(pair.active, id, ipv4(1, 0)), 0);
  rdma_ucm_create_id_resp first, second;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 5), first), 0);
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_JOIN_IP_MCAST, join_of(id, 6), second), 0);
  rdma_ucm_destroy_id leave = {};
  leave.id = first.id;
  rdma_ucm_destroy_id_resp left;
  assert_int_equal(host.ask(pair.active, RDMA_USER_CM_CMD_LEAVE_MCAST, leave, left), 0);
  assert_int_equal(left.events_reported, 0);
  assert_int_equal(host.removed, 1);
  assert_int_equal(host.event(pair.active, EventKind::kMulticastJoin).id, second.id);
  uint32_t reported = 0;
  assert_int_equal(host.destroy(pair.active, id, &reported), 0);
  assert_int_equal(reported, 1);
  pair.finish();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      RDMA_CM_TEST(connect__datagram_service__gives_its_queue_pair),
      RDMA_CM_TEST(reject__datagram_request__is_unreachable),
      RDMA_CM_TEST(connect__nobody_answers__is_unreachable),
      RDMA_CM_TEST(connect__too_much_private_data__is_refused),
      RDMA_CM_TEST(die__while_waiting__is_unreachable),
      RDMA_CM_TEST(die__after_the_answer__the_client_alone_hears_of_it),
      RDMA_CM_TEST(join__group__gives_its_address),
      RDMA_CM_TEST(die__in_groups__stays_in_them),
      RDMA_CM_TEST(repeat__join_that_was_handed_over__counts_once),
      RDMA_CM_TEST(join__repeated__joins_once),
      RDMA_CM_TEST(leave__unread_event__goes_along),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
