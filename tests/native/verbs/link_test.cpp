// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A port that goes down by plan and comes back. The plan of this test's environment (CMakeLists.txt):
//
//   link@1=300ms, link@3=2s
//
// The tests run in this order, once.
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// 67 ms, eight times, are longer than the first outage.
constexpr uint8_t kLongTimeout = 14;
// 4 ms, eight times, are shorter than the second.
constexpr uint8_t kShortTimeout = 10;

int start(void**) {
  return begin({}) ? 0 : -1;
}

bool reset(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

void reconnect(uint8_t timeout) {
  assert_true(reset(pair->a.qp) && reset(pair->b.qp));
  assert_true(connect(pair->a.qp, pair->b.qp->qp_num, timeout));
  assert_true(connect(pair->b.qp, pair->a.qp->qp_num, timeout));
}

void write_bytes(uint64_t id) {
  assert_int_equal(post_send(pair->a, id, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
}

void expect_event(ibv_event_type type) {
  ibv_async_event event;
  assert_true(becomes_readable(pair->context->async_fd));
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, type);
  assert_int_equal(event.element.port_num, 1);
  ibv_ack_async_event(&event);
}

ibv_port_state port_state() {
  ibv_port_attr attr;
  assert_int_equal(ibv_query_port(pair->context, 1, &attr), 0);
  return attr.state;
}

// A machine that stops this program may bring it past the end of the outage.
void expect_down() {
  assert_true(port_state() == IBV_PORT_DOWN || readable(pair->context->async_fd, 0));
}

void link__down_for_a_moment__the_connection_survives(void**) {
  reconnect(kLongTimeout);
  assert_int_equal(port_state(), IBV_PORT_ACTIVE);
  write_bytes(1);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  expect_event(IBV_EVENT_PORT_ERR);
  expect_down();
  write_bytes(2);
  expect(pair->a.cq, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  // No packet has passed before.
  assert_int_equal(port_state(), IBV_PORT_ACTIVE);
  expect_event(IBV_EVENT_PORT_ACTIVE);
}

void link__down_for_long__retries_exceeded(void**) {
  reconnect(kShortTimeout);
  write_bytes(3);
  expect(pair->a.cq, 3, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  expect_event(IBV_EVENT_PORT_ERR);
  write_bytes(4);
  expect(pair->a.cq, 4, IBV_WC_RETRY_EXC_ERR, IBV_WC_RDMA_WRITE);
  expect_down();
  expect_event(IBV_EVENT_PORT_ACTIVE);
  assert_int_equal(port_state(), IBV_PORT_ACTIVE);
  reconnect(kShortTimeout);
  write_bytes(5);
  expect(pair->a.cq, 5, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_false(readable(pair->context->async_fd, 0));
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test(link__down_for_a_moment__the_connection_survives),
      cmocka_unit_test(link__down_for_long__retries_exceeded),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
