// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A verb that returns an error number has set errno to it. Runs under dapple-run.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/privilege.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// Objects beside the pair's, for verbs that the pair does not need.
ibv_mw* window = nullptr;
ibv_srq* srq = nullptr;
ibv_qp* datagrams = nullptr;
ibv_pd* other_pd = nullptr;
ibv_gid group = {};

struct Call {
  const char* name;
  int error;  // the result in the parent process; 0: it may succeed
  int (*call)();
};

int post_too_many_segments() {
  ibv_sge segments[33] = {};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = segments;
  request.num_sge = 33;
  request.opcode = IBV_WR_SEND;
  return ibv_post_send(pair->a.qp, &request, &bad);
}
int receive_too_many_segments(bool shared) {
  ibv_sge segments[33] = {};
  ibv_recv_wr request = {0, nullptr, segments, 33}, *bad = nullptr;
  return shared ? ibv_post_srq_recv(srq, &request, &bad) : ibv_post_recv(pair->a.qp, &request, &bad);
}
int modify_to_nothing() {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTR;
  return ibv_modify_qp(pair->a.qp, &attr, IBV_QP_STATE);
}
int limit_rate() {
  ibv_qp_rate_limit_attr attr = {};
  attr.rate_limit = 1000;
  return ibv_modify_qp_rate_limit(pair->a.qp, &attr);
}
int query_queue_pair() {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  return ibv_query_qp(pair->a.qp, &attr, IBV_QP_STATE, &init);
}
int modify_srq_wrongly() {
  ibv_srq_attr attr = {};
  return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}
int query_srq() {
  ibv_srq_attr attr = {};
  return ibv_query_srq(srq, &attr);
}
int query_device() {
  ibv_device_attr attr = {};
  return ibv_query_device(pair->context, &attr);
}
int query_extended_device() {
  ibv_device_attr_ex attr = {};
  return ibv_query_device_ex(pair->context, nullptr, &attr);
}
int query_port_2() {
  ibv_port_attr attr = {};
  return ibv_query_port(pair->context, 2, &attr);
}
int bind_from_address_0() {
  ibv_mw_bind bind = {};
  bind.bind_info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
  return ibv_bind_mw(pair->a.qp, window, &bind);
}
int poll_less_than_none() {
  ibv_wc completion;
  return -ibv_poll_cq(pair->a.cq, -1, &completion);
}
int complete_too_many() {
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair->a.qp);
  ibv_wr_start(qp);
  for (uint32_t i = 0; i < 4 * kDepth; ++i) ibv_wr_send(qp);
  return ibv_wr_complete(qp);
}
int number_of_srq() {
  uint32_t number = 0;
  return ibv_get_srq_num(srq, &number);
}

// Every operation of the plug-in that returns an error number. ibv_destroy_ah() and ibv_dealloc_pd() of a free domain
// never fail.
const Call kCalls[] = {
    {"ibv_attach_mcast", EINVAL, [] { return ibv_attach_mcast(pair->a.qp, &group, 0); }},
    {"ibv_bind_mw", EINVAL, bind_from_address_0},
    {"ibv_dealloc_pd", EBUSY, [] { return ibv_dealloc_pd(pair->pd); }},
    {"ibv_dereg_mr", 0, [] { return ibv_dereg_mr(pair->a.mr); }},
    {"ibv_destroy_cq", EBUSY, [] { return ibv_destroy_cq(pair->a.cq); }},
    {"ibv_destroy_qp", EBUSY, [] { return ibv_destroy_qp(datagrams); }},
    {"ibv_destroy_srq", EBUSY, [] { return ibv_destroy_srq(srq); }},
    {"ibv_detach_mcast", EINVAL, [] { return ibv_detach_mcast(pair->a.qp, &group, 0); }},
    {"ibv_get_srq_num", EOPNOTSUPP, number_of_srq},
    {"ibv_modify_qp", EINVAL, modify_to_nothing},
    {"ibv_modify_qp_rate_limit", EOPNOTSUPP, limit_rate},
    {"ibv_modify_srq", EINVAL, modify_srq_wrongly},
    {"ibv_poll_cq", EINVAL, poll_less_than_none},
    {"ibv_post_recv", EINVAL, [] { return receive_too_many_segments(false); }},
    {"ibv_post_send", EINVAL, post_too_many_segments},
    {"ibv_post_srq_recv", EINVAL, [] { return receive_too_many_segments(true); }},
    {"ibv_query_device", 0, query_device},
    {"ibv_query_device_ex", 0, query_extended_device},
    {"ibv_query_port", EINVAL, query_port_2},
    {"ibv_query_qp", 0, query_queue_pair},
    {"ibv_query_srq", 0, query_srq},
    {"ibv_req_notify_cq", 0, [] { return ibv_req_notify_cq(pair->a.cq, 0); }},
    {"ibv_resize_cq", EINVAL, [] { return ibv_resize_cq(pair->a.cq, 0); }},
    {"ibv_wr_complete", ENOMEM, complete_too_many},
    {"ibv_dealloc_mw", 0, [] { return ibv_dealloc_mw(window); }},
};

// Null, or the name of a call with another result, or whose errno is not its result.
const char* wrong_call(const Call& call, int error) {
  errno = 0;
  const int result = call.call();
  if (result == error && errno == error) return nullptr;
  fprintf(stderr, "%s: returned %d, errno %d, expected %d\n", call.name, result, errno, error);
  return call.name;
}

bool make_objects() {
  PairOptions options;
  options.operations = IBV_QP_EX_WITH_SEND;
  if (!begin(options)) return false;
  ibv_srq_init_attr srq_init = {nullptr, {4, 1, 0}};
  srq = ibv_create_srq(pair->pd, &srq_init);
  window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
  other_pd = ibv_alloc_pd(pair->context);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->a.cq;
  init.srq = srq;
  init.cap = {4, 0, 1, 0, 0};
  init.qp_type = IBV_QPT_UD;
  datagrams = srq == nullptr ? nullptr : ibv_create_qp(pair->pd, &init);
  // 224.0.0.251
  group.raw[10] = group.raw[11] = 0xFF;
  group.raw[12] = 224;
  group.raw[15] = 251;
  return window != nullptr && other_pd != nullptr && datagrams != nullptr;
}

void calls__that_fail__set_errno(void**) {
  assert_true(make_objects());
  const bool has_route = run("ip route add 224.0.0.0/4 dev lo");
  if (has_route) assert_int_equal(ibv_attach_mcast(datagrams, &group, 0), 0);
  for (const Call& call : kCalls) {
    if (call.error == 0) continue;
    if (strcmp(call.name, "ibv_destroy_qp") == 0 && !has_route) continue;
    assert_null(wrong_call(call, call.error));
  }
  if (has_route) assert_int_equal(ibv_detach_mcast(datagrams, &group, 0), 0);
  // This one returns an object.
  errno = 0;
  ibv_counters_init_attr counters = {};
  counters.comp_mask = 1;
  assert_null(ibv_create_counters(pair->context, &counters));
  assert_int_equal(errno, EOPNOTSUPP);
  // libibverbs replaces the result by a number of its own.
  errno = 0;
  assert_int_not_equal(ibv_rereg_mr(pair->a.mr, 0x100, nullptr, nullptr, 0, 0), 0);
  assert_int_not_equal(errno, 0);
}

int set_qkey(uint32_t qkey) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  return ibv_modify_qp(datagrams, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
}

// As the kernel: the highest bit of a Q_Key needs CAP_NET_RAW.
void qkey__privileged__needs_the_capability(void**) {
  assert_true(set_privilege(false));
  for (const uint32_t qkey : {0x8000'0000u, 0x8001'0000u, UINT32_MAX}) {
    errno = 0;
    assert_int_equal(set_qkey(qkey), EPERM);
    assert_int_equal(errno, EPERM);
  }
  assert_int_equal(set_qkey(0x7FFF'FFFF), 0);
  // Some users never have it.
  if (!set_privilege(true)) return;
  assert_int_equal(set_qkey(0x8001'0000), 0);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  assert_int_equal(ibv_query_qp(datagrams, &attr, IBV_QP_QKEY, &init), 0);
  assert_int_equal(attr.qkey, 0x8001'0000);
}

// In a child of fork() every verb on the parent's objects fails.
void calls__in_a_child__set_errno(void**) {
  const pid_t child = fork();
  if (child == 0) {
    bool good = true;
    for (const Call& call : kCalls) {
      // These need no device.
      const bool is_local = strcmp(call.name, "ibv_dealloc_pd") == 0 || strcmp(call.name, "ibv_get_srq_num") == 0 ||
                            strcmp(call.name, "ibv_poll_cq") == 0;
      if (!is_local && wrong_call(call, ENODEV) != nullptr) good = false;
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(ibv_destroy_qp(datagrams), 0);
  assert_int_equal(ibv_destroy_srq(srq), 0);
  assert_int_equal(ibv_dealloc_mw(window), 0);
  assert_int_equal(ibv_dealloc_pd(other_pd), 0);
  finish(nullptr);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test(calls__that_fail__set_errno),
      cmocka_unit_test(qkey__privileged__needs_the_capability),
      cmocka_unit_test(calls__in_a_child__set_errno),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
