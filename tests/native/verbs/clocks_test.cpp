// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The device's clock, time stamps of completions, moderated events, completion vectors. Runs under dapple-run.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "provider/common/clock.hpp"
#include "tests/native/clock.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

uint64_t device_time() {
  ibv_values_ex values = {};
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  return ibv_query_rt_values_ex(pair->context, &values) == 0 ? static_cast<uint64_t>(values.raw_clock.tv_nsec) : 0;
}

void clock__counts_as_fast_as_the_device_says(void**) {
  assert_true(begin({}));
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(pair->context, nullptr, &attr), 0);
  assert_int_equal(attr.completion_timestamp_mask, UINT64_MAX);
  assert_true(attr.hca_core_clock > 0);
  // The sleep is by another clock, which may run up to a tenth faster or slower. So the limits are by this one.
  const uint64_t before = dapple::now_ns(CLOCK_MONOTONIC_RAW), first = device_time();
  const uint64_t begin_ns = dapple::now_ns(CLOCK_MONOTONIC_RAW);
  usleep(20'000);
  const uint64_t end_ns = dapple::now_ns(CLOCK_MONOTONIC_RAW);
  const uint64_t second = device_time(), after = dapple::now_ns(CLOCK_MONOTONIC_RAW);
  const uint64_t ticks_ns = (second - first) * 1'000'000 / attr.hca_core_clock;
  assert_true(end_ns > begin_ns && ticks_ns >= end_ns - begin_ns && ticks_ns <= after - before);
  ibv_values_ex values = {};
  values.comp_mask = 2;
  assert_int_equal(ibv_query_rt_values_ex(pair->context, &values), EINVAL);
}

// A queue pair of datagrams that sends to itself, and completes into `cq`.
ibv_qp* make_own_pair(ibv_cq* cq) {
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = cq;
  init.cap = {64, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_UD;
  init.sq_sig_all = 1;
  ibv_qp* qp = ibv_create_qp(pair->pd, &init);
  return qp != nullptr && connect(qp, 0) ? qp : nullptr;
}

ibv_cq_ex* make_stamped(uint64_t flags) {
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 100;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS | flags;
  return ibv_create_cq_ex(pair->context, &attr);
}

void stamps__lie_between_the_post_and_the_poll(void**) {
  assert_true(begin({}));
  ibv_cq_ex* cq = make_stamped(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
  assert_non_null(cq);
  ibv_qp* qp = make_own_pair(ibv_cq_ex_to_cq(cq));
  ibv_ah* ah = make_own_address(*pair);
  assert_true(qp != nullptr && ah != nullptr);
  uint64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    const uint64_t before = device_time(), wall_before = dapple::now_ns(CLOCK_REALTIME);
    assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
    ibv_poll_cq_attr poll_attr = {};
    int error = ENOENT;
    for (const double end = now() + kPatience; error == ENOENT && now() <= end;) error = ibv_start_poll(cq, &poll_attr);
    assert_int_equal(error, 0);
    const uint64_t stamp = ibv_wc_read_completion_ts(cq), wall = ibv_wc_read_completion_wallclock_ns(cq);
    assert_true(stamp >= before && stamp <= device_time() && stamp >= last);
    // The wall clock may be set meanwhile, so it has a second of room.
    assert_true(wall + 1'000'000'000 >= wall_before && wall <= dapple::now_ns(CLOCK_REALTIME) + 1'000'000'000);
    last = stamp;
    assert_int_equal(ibv_next_poll(cq), ENOENT);
    ibv_end_poll(cq);
  }
  // The plain interface takes such completions, too.
  assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
  expect(ibv_cq_ex_to_cq(cq), 0, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_int_equal(ibv_destroy_ah(ah), 0);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  errno = 0;
  assert_null(make_stamped(IBV_WC_EX_WITH_CVLAN));
  assert_int_equal(errno, EOPNOTSUPP);
}

int moderate(ibv_cq* cq, uint16_t count, uint16_t period) {
  ibv_modify_cq_attr attr = {};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {count, period};
  return ibv_modify_cq(cq, &attr);
}

void take_event(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
  ibv_ack_cq_events(cq, 1);
}

void moderation__holds_an_event_for_others(void**) {
  assert_true(begin({}));
  ibv_device_attr_ex device = {};
  assert_int_equal(ibv_query_device_ex(pair->context, nullptr, &device), 0);
  assert_true(device.cq_mod_caps.max_cq_count > 0 && device.cq_mod_caps.max_cq_period > 0);
  ibv_comp_channel* channel = ibv_create_comp_channel(pair->context);
  assert_non_null(channel);
  ibv_cq* cq = ibv_create_cq(pair->context, 100, nullptr, channel, 0);
  assert_non_null(cq);
  ibv_qp* qp = make_own_pair(cq);
  ibv_ah* ah = make_own_address(*pair);
  assert_true(qp != nullptr && ah != nullptr);
  ibv_modify_cq_attr wrong = {};
  wrong.attr_mask = 2;
  assert_int_equal(ibv_modify_cq(cq, &wrong), EINVAL);

  // The fourth completion comes long before the end of the period.
  assert_int_equal(moderate(cq, 4, UINT16_MAX), 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  for (int i = 0; i < 4; ++i) assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
  assert_true(becomes_readable(channel->fd));
  take_event(channel);
  // Nobody sends a second one, so the period ends the wait.
  assert_int_equal(moderate(cq, 4, 50'000), 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  const double start = now();
  assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
  assert_true(becomes_readable(channel->fd));
  assert_true(now() - start >= 0.045);
  take_event(channel);
  // The end of the moderation ends the wait.
  assert_int_equal(moderate(cq, 4, UINT16_MAX), 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
  assert_int_equal(moderate(cq, 0, 0), 0);
  assert_true(becomes_readable(channel->fd));
  take_event(channel);
  // A queue that goes while its event is held.
  assert_int_equal(moderate(cq, 4, 1000), 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
  assert_int_equal(ibv_destroy_ah(ah), 0);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_cq(cq), 0);
  assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

void vectors__one_for_each_cpu(void**) {
  assert_true(begin({}));
  const int vectors = pair->context->num_comp_vectors;
  assert_int_equal(vectors, sysconf(_SC_NPROCESSORS_ONLN));
  ibv_cq* cq = ibv_create_cq(pair->context, 1, nullptr, nullptr, vectors - 1);
  assert_non_null(cq);
  assert_int_equal(ibv_destroy_cq(cq), 0);
  errno = 0;
  assert_null(ibv_create_cq(pair->context, 1, nullptr, nullptr, vectors));
  assert_int_equal(errno, EINVAL);
}

// Options of connections: this device has none.
void ece__no_options_of_its_own_vendor(void**) {
  assert_true(begin({}));
  ibv_ece ece = {1, 2, 3};
  assert_int_equal(ibv_query_ece(pair->a.qp, &ece), 0);
  assert_true(ece.vendor_id != 0 && ece.options == 0 && ece.comp_mask == 0);
  ece.options = 7;
  assert_int_equal(ibv_set_ece(pair->a.qp, &ece), 0);
  assert_int_equal(ibv_query_ece(pair->a.qp, &ece), 0);
  assert_int_equal(ece.options, 0);
  ece.vendor_id ^= 1;
  assert_int_equal(ibv_set_ece(pair->a.qp, &ece), EINVAL);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(clock__counts_as_fast_as_the_device_says, finish),
      cmocka_unit_test_teardown(stamps__lie_between_the_post_and_the_poll, finish),
      cmocka_unit_test_teardown(moderation__holds_an_event_for_others, finish),
      cmocka_unit_test_teardown(vectors__one_for_each_cpu, finish),
      cmocka_unit_test_teardown(ece__no_options_of_its_own_vendor, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
