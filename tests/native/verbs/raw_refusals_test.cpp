// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What raw packet queue pairs and flows refuse. Runs under dapple-run.
#include <errno.h>
#include <unistd.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/privilege.hpp"
#include "tests/native/verbs/raw_pair.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

void queue_pairs__refuse_what_the_kernel_refuses(void**) {
  assert_true(begin_raw());
  ibv_qp* fresh = make_raw_qp(*a);
  assert_non_null(fresh);
  assert_int_equal(post_room(*a, fresh, 0, 0), EINVAL);
  assert_false(change_raw_qp(fresh, IBV_QPS_RTR));
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE), EINVAL);
  assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX), EINVAL);
  assert_true(change_raw_qp(fresh, IBV_QPS_INIT));
  assert_int_equal(post_room(*a, fresh, 0, 0), 0);
  assert_int_equal(post_frame(*a, fresh, 1, 0, 60), EINVAL);
  assert_int_equal(ibv_destroy_qp(fresh), 0);

  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = a->cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* connection = ibv_create_qp(a->pd, &init);
  assert_null(make_flow(connection, udp_flow(kPort)));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_destroy_qp(connection), 0);

  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_int_equal(ibv_destroy_qp(receivers[0]), EBUSY);
  assert_int_equal(ibv_destroy_flow(flow), 0);

  ibv_qp_init_attr_ex extended = {};
  extended.qp_type = IBV_QPT_RAW_PACKET;
  extended.send_cq = extended.recv_cq = a->cq;
  extended.cap = init.cap;
  extended.pd = a->pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  extended.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
  assert_null(ibv_create_qp_ex(a->context, &extended));
  assert_int_equal(errno, EOPNOTSUPP);
}

int limit_rate(ibv_qp* qp, uint32_t rate, uint32_t comp_mask = 0) {
  ibv_qp_rate_limit_attr limit = {};
  limit.rate_limit = rate;
  limit.comp_mask = comp_mask;
  return ibv_modify_qp_rate_limit(qp, &limit);
}

void rates__beyond_the_limits_are_refused(void**) {
  assert_true(begin_raw());
  ibv_device_attr_ex device = {};
  assert_int_equal(ibv_query_device_ex(a->context, nullptr, &device), 0);
  const ibv_packet_pacing_caps& caps = device.packet_pacing_caps;
  assert_int_equal(caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
  assert_int_equal(limit_rate(sender, caps.qp_rate_limit_max), 0);
  assert_int_equal(limit_rate(sender, caps.qp_rate_limit_max + 1), EINVAL);
  assert_int_equal(limit_rate(sender, caps.qp_rate_limit_min, 1), EINVAL);
  ibv_qp* fresh = make_raw_qp(*a);
  assert_non_null(fresh);
  assert_true(change_raw_qp(fresh, IBV_QPS_INIT));
  assert_true(change_raw_qp(fresh, IBV_QPS_RTR));
  assert_int_equal(limit_rate(fresh, 1000), EINVAL);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.rate_limit = 1000;
  assert_int_equal(ibv_modify_qp(fresh, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
  assert_int_equal(ibv_destroy_qp(fresh), 0);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = a->cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_UD;
  ibv_qp* datagrams = ibv_create_qp(a->pd, &init);
  assert_int_equal(ibv_modify_qp(datagrams, &attr, IBV_QP_RATE_LIMIT), EINVAL);
  assert_int_equal(ibv_destroy_qp(datagrams), 0);
}

void without_the_capability__frames_are_forbidden(void**) {
  assert_true(begin_raw());
  assert_true(set_privilege(false));
  assert_null(make_raw_qp(*a));
  assert_int_equal(errno, EPERM);
  assert_null(make_flow(receivers[0], udp_flow(kPort)));
  assert_int_equal(errno, EPERM);
  assert_true(set_privilege(true));
}

void interface_without_ethernet__has_no_frames(void**) {
  if (!run("ip tuntap add mode tun name vt && ip address add 10.88.0.1/24 dev vt && ip link set vt up"))
    skip_test("no interface of the type tun can be made");
  static RawEnd end;
  bool is_open = false;
  for (int i = 0; i < 5000 && !is_open; i++) {
    is_open = open_end(end, "vt");
    if (!is_open) usleep(200);
  }
  assert_true(is_open);
  assert_null(make_raw_qp(end));
  assert_int_equal(errno, EOPNOTSUPP);
  close_end(end);
  assert_true(run("ip link del vt"));
}

}  // namespace

int main() {
  need_veth_pair();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(rates__beyond_the_limits_are_refused, end_raw),
      cmocka_unit_test_teardown(queue_pairs__refuse_what_the_kernel_refuses, end_raw),
      cmocka_unit_test_teardown(without_the_capability__frames_are_forbidden, end_raw),
      cmocka_unit_test(interface_without_ethernet__has_no_frames),
  };
  return cmocka_run_group_tests_name("raw_refusals", tests, nullptr, nullptr);
}
