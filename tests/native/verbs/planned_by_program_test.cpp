// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completions and events that dappledv_fault_next() plans. "late" as an argument: the process opens a device before its
// first call, which is too late.
#include <errno.h>
#include <infiniband/dappledv.h>
#include <string.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

int prepare(void**) {
  return dappledv_fault_clear() == 0 && begin({}) ? 0 : -1;
}

int open_first(void**) {
  return begin({}) ? 0 : -1;
}

void write_bytes(uint64_t id, ibv_wc_status status) {
  assert_int_equal(post_send(pair->a, id, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  expect(pair->a.cq, id, status, IBV_WC_RDMA_WRITE);
}

void fault_next__completion__its_status_and_the_queue_pair_in_error(void**) {
  write_bytes(1, IBV_WC_SUCCESS);
  assert_int_equal(dappledv_fault_next("completion", IBV_WC_RETRY_EXC_ERR), 0);
  write_bytes(2, IBV_WC_RETRY_EXC_ERR);
  write_bytes(3, IBV_WC_WR_FLUSH_ERR);
}

void fault_next__event__with_the_next_completion(void**) {
  // The first of enum ibv_event_type, with the number 0.
  assert_int_equal(dappledv_fault_next("event", IBV_EVENT_CQ_ERR), 0);
  assert_false(readable(pair->context->async_fd, 0));
  write_bytes(1, IBV_WC_SUCCESS);
  ibv_async_event event;
  assert_true(becomes_readable(pair->context->async_fd));
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
  assert_ptr_equal(event.element.cq, pair->a.cq);
  ibv_ack_async_event(&event);
  write_bytes(2, IBV_WC_SUCCESS);
  assert_false(readable(pair->context->async_fd, 0));
}

void fault_next__after_a_device_is_open__ebusy(void**) {
  assert_int_equal(dappledv_fault_next("completion", IBV_WC_RETRY_EXC_ERR), EBUSY);
  assert_int_equal(dappledv_fault_clear(), EBUSY);
  write_bytes(1, IBV_WC_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(fault_next__completion__its_status_and_the_queue_pair_in_error, prepare, finish),
      cmocka_unit_test_setup_teardown(fault_next__event__with_the_next_completion, prepare, finish),
  };
  const CMUnitTest late[] = {
      cmocka_unit_test_setup_teardown(fault_next__after_a_device_is_open__ebusy, open_first, finish),
  };
  if (argc > 1 && strcmp(argv[1], "late") == 0) return cmocka_run_group_tests(late, nullptr, nullptr);
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
