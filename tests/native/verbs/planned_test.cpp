// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Calls and completions that fail by plan. The plan of this test's environment (CMakeLists.txt):
//
//   ibv_reg_mr@3=ENOMEM, ibv_post_send@2=EAGAIN, ibv_create_cq@3=EINTR, completion@3=REM_ACCESS_ERR,
//   event@1=PORT_ERR, event@2=QP_ACCESS_ERR
//
// The tests run in this order, once.
#include <errno.h>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

int start(void**) {
  return begin({}) ? 0 : -1;
}

void registration__the_third__enomem_once(void**) {
  errno = 0;
  assert_null(ibv_reg_mr(pair->pd, pair->a.buffer, 64, 0));
  assert_int_equal(errno, ENOMEM);
  ibv_mr* mr = ibv_reg_mr(pair->pd, pair->a.buffer, 64, 0);
  assert_non_null(mr);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

void queue__the_third__eintr_once(void**) {
  errno = 0;
  assert_null(ibv_create_cq(pair->context, 1, nullptr, nullptr, 0));
  assert_int_equal(errno, EINTR);
  ibv_cq* cq = ibv_create_cq(pair->context, 1, nullptr, nullptr, 0);
  assert_non_null(cq);
  assert_int_equal(ibv_destroy_cq(cq), 0);
}

void post__the_second__its_errno_and_nothing_posted(void**) {
  ibv_wc completion;
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  errno = 0;
  assert_int_equal(post_send(pair->a, 2, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), EAGAIN);
  assert_int_equal(errno, EAGAIN);
  assert_int_equal(post_send(pair->a, 3, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  expect(pair->a.cq, 3, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_int_equal(ibv_poll_cq(pair->a.cq, 1, &completion), 0);
}

void events__of_the_first_two_completions__device_and_queue_pair(void**) {
  ibv_async_event event;
  assert_true(becomes_readable(pair->context->async_fd));
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
  assert_int_equal(event.element.port_num, 1);
  ibv_ack_async_event(&event);
  assert_true(becomes_readable(pair->context->async_fd));
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  assert_ptr_equal(event.element.qp, pair->a.qp);
  ibv_ack_async_event(&event);
}

// As with any other error, the queue pair is in error afterwards, and flushes.
void completion__the_third__fails_and_the_queue_pair_with_it(void**) {
  assert_int_equal(post_send(pair->a, 4, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  expect(pair->a.cq, 4, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  assert_int_equal(ibv_query_qp(pair->a.qp, &attr, IBV_QP_STATE, &init), 0);
  assert_int_equal(attr.qp_state, IBV_QPS_ERR);
  assert_int_equal(post_send(pair->a, 5, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  expect(pair->a.cq, 5, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test(registration__the_third__enomem_once),
      cmocka_unit_test(queue__the_third__eintr_once),
      cmocka_unit_test(post__the_second__its_errno_and_nothing_posted),
      cmocka_unit_test(events__of_the_first_two_completions__device_and_queue_pair),
      cmocka_unit_test(completion__the_third__fails_and_the_queue_pair_with_it),
  };
  return cmocka_run_group_tests(tests, start, finish);
}
