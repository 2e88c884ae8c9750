// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Counters of flows, between both ends of a veth pair. Runs under dapple-run.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/verbs/raw_pair.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

ibv_counters* make_counters() {
  ibv_counters_init_attr attr = {};
  return ibv_create_counters(b->context, &attr);
}

int attach(ibv_counters* counters, ibv_counter_description what, uint32_t index, ibv_flow* flow = nullptr) {
  ibv_counter_attach_attr attr = {};
  attr.counter_desc = what;
  attr.index = index;
  return ibv_attach_counters_point_flow(counters, &attr, flow);
}

// A flow to the first receiver.
ibv_flow* make_counted_flow(ibv_counters* counters, bool drops = false) {
  struct [[gnu::packed, gnu::aligned(8)]] {
    ibv_flow_attr attr;
    ibv_flow_spec_tcp_udp udp;
    ibv_flow_spec_counter_action count;
    ibv_flow_spec_action_drop drop;
  }
  whole = {};
  const UdpFlow udp = udp_flow(kPort);
  whole.attr = udp.attr;
  whole.attr.size = sizeof whole;
  whole.attr.num_of_specs = drops ? 3 : 2;
  whole.udp = udp.udp;
  whole.count.type = IBV_FLOW_SPEC_ACTION_COUNT;
  whole.count.size = sizeof whole.count;
  whole.count.counters = counters;
  whole.drop.type = IBV_FLOW_SPEC_ACTION_DROP;
  whole.drop.size = sizeof whole.drop;
  errno = 0;
  return ibv_create_flow(receivers[0], &whole.attr);
}

void counters__count_what_their_flow_matches(void**) {
  assert_true(begin_raw());
  ibv_counters* counters = make_counters();
  assert_non_null(counters);
  assert_int_equal(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
  assert_int_equal(attach(counters, IBV_COUNTER_BYTES, 2), 0);
  ibv_flow* flow = make_counted_flow(counters);
  assert_non_null(flow);
  for (uint32_t i = 0; i < 2; ++i) assert_int_equal(post_room(*b, receivers[0], i, i), 0);
  send_udp(kOtherPort, 500, 'w');
  send_udp(kPort, 100, 'x');
  send_udp(kPort, 200, 'y');
  expect_udp(0, receivers[0], 100, 'x');
  expect_udp(1, receivers[0], 200, 'y');
  uint64_t values[4] = {7, 7, 7, 7};
  assert_int_equal(ibv_read_counters(counters, values, 4, 0), 0);
  assert_int_equal(values[0], 2);
  assert_int_equal(values[1], 0);
  assert_int_equal(values[2], 300 + 2 * kUdpHeaders);
  assert_int_equal(values[3], 0);
  assert_int_equal(ibv_destroy_flow(flow), 0);
  assert_int_equal(ibv_destroy_counters(counters), 0);
}

void counters__count_what_their_flow_drops(void**) {
  assert_true(begin_raw());
  ibv_counters* counters = make_counters();
  assert_int_equal(attach(counters, IBV_COUNTER_PACKETS, 0), 0);
  ibv_flow* flow = make_counted_flow(counters, true);
  ibv_flow* rest = make_flow(receivers[1], udp_flow(kOtherPort));
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  assert_int_equal(post_room(*b, receivers[1], 1, 1), 0);
  send_udp(kPort, 100, 'd');
  send_udp(kOtherPort, 100, 'e');
  expect_udp(1, receivers[1], 100, 'e');
  uint64_t packets = 0;
  assert_int_equal(ibv_read_counters(counters, &packets, 1, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
  assert_int_equal(packets, 1);
  for (ibv_flow* each : {flow, rest}) assert_int_equal(ibv_destroy_flow(each), 0);
  assert_int_equal(ibv_destroy_counters(counters), 0);
}

void counters__refuse_what_mlx5_refuses(void**) {
  assert_true(begin_raw());
  ibv_counters* counters = make_counters();
  assert_null(make_counted_flow(counters));
  assert_int_equal(errno, EINVAL);
  assert_null(make_counted_flow(nullptr));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(attach(counters, static_cast<ibv_counter_description>(2), 0), ENOTSUP);
  assert_int_equal(attach(counters, IBV_COUNTER_PACKETS, 1), 0);
  uint64_t values[2] = {};
  assert_int_equal(ibv_read_counters(counters, values, 2, 0), EINVAL);
  ibv_flow* flow = make_counted_flow(counters);
  assert_int_equal(attach(counters, IBV_COUNTER_BYTES, 0, flow), ENOTSUP);
  assert_int_equal(attach(counters, IBV_COUNTER_BYTES, 0), EBUSY);
  assert_int_equal(ibv_destroy_counters(counters), EBUSY);
  assert_int_equal(ibv_read_counters(counters, values, 1, 0), EINVAL);
  assert_int_equal(ibv_read_counters(counters, values, 2, 2), EINVAL);
  assert_int_equal(ibv_read_counters(counters, values, 2, 0), 0);
  assert_int_equal(ibv_destroy_flow(flow), 0);
  assert_int_equal(attach(counters, IBV_COUNTER_BYTES, 0), 0);
  assert_int_equal(ibv_destroy_counters(counters), 0);
}

// The exit code: 0 if the child's own device works, and its parent's counters are not valid.
int use_as_child(ibv_context* parents, ibv_counters* counters) {
  if (attach(counters, IBV_COUNTER_PACKETS, 0) != ENODEV) return 1;
  if (ibv_destroy_counters(counters) != ENODEV) return 2;
  ibv_context* own = ibv_open_device(parents->device);
  return own != nullptr && ibv_alloc_pd(own) != nullptr ? 0 : 3;
}

void counters__alone_in_their_device_belong_to_the_parent_of_a_fork(void**) {
  assert_true(begin_raw());
  ibv_context* context = ibv_open_device(b->context->device);
  assert_non_null(context);
  ibv_counters_init_attr attr = {};
  ibv_counters* counters = ibv_create_counters(context, &attr);
  assert_non_null(counters);
  const pid_t child = fork();
  if (child == 0) _exit(use_as_child(context, counters));
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(ibv_destroy_counters(counters), 0);
  assert_int_equal(ibv_close_device(context), 0);
}

}  // namespace

int main(int argc, char**) {
  need_veth_pair();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(counters__count_what_their_flow_matches, end_raw),
      cmocka_unit_test_teardown(counters__count_what_their_flow_drops, end_raw),
      // What --check reports as a mistake.
      cmocka_unit_test_teardown(counters__refuse_what_mlx5_refuses, end_raw),
      cmocka_unit_test_teardown(counters__alone_in_their_device_belong_to_the_parent_of_a_fork, end_raw),
  };
  constexpr size_t kWithoutMistakes = 2;
  const size_t count = argc > 1 ? kWithoutMistakes : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("raw_counters", tests, count, nullptr, nullptr);
}
