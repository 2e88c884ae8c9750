// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// ibv_qp_ex and ibv_cq_ex of the software device. Runs under dapple-run.
#include <errno.h>
#include <string.h>

#include <initializer_list>

#include "tests/native/clock.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// IBTA table 38: UC has no opcode for a Send with Invalidate.
void extended__operations_that_the_type_lacks_are_refused(void**) {
  assert_true(begin({}));
  ibv_qp_init_attr_ex attr = {};
  attr.send_cq = attr.recv_cq = pair->a.cq;
  attr.cap = {1, 1, 1, 1, 0};
  attr.qp_type = IBV_QPT_UC;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = pair->pd;
  for (const uint64_t lacking : {IBV_QP_EX_WITH_SEND_WITH_INV, IBV_QP_EX_WITH_RDMA_READ}) {
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | lacking;
    assert_null(ibv_create_qp_ex(pair->context, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
  }
}

void extended__requests_and_completions(void**) {
  PairOptions options;
  options.operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE;
  assert_true(begin(options));
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
  assert_null(ibv_create_cq_ex(pair->context, &attr));
  assert_int_equal(errno, EOPNOTSUPP);

  ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair->a.qp);
  assert_non_null(qp);
  const uint64_t word = 0x1122334455667788;
  char first[] = "in";
  char second[] = "line";
  const ibv_data_buf list[] = {{first, 2}, {second, 5}};
  assert_int_equal(post_receive(pair->b, 5, 1000, 100), 0);
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_atomic_write(qp, pair->b.mr->rkey, reinterpret_cast<uintptr_t>(pair->b.buffer), &word);
  qp->wr_id = 2;
  qp->wr_flags = 0;
  ibv_wr_rdma_write(qp, pair->b.mr->rkey, reinterpret_cast<uintptr_t>(pair->b.buffer) + 8);
  ibv_wr_set_inline_data_list(qp, 2, list);
  memset(second, 0, sizeof(second));
  qp->wr_id = 3;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(qp);
  ibv_wr_set_sge(qp, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), 50);
  assert_int_equal(ibv_wr_complete(qp), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_ATOMIC_WRITE);
  expect(pair->a.cq, 3, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_memory_equal(pair->b.buffer, &word, sizeof(word));
  assert_string_equal(pair->b.buffer + 8, "inline");
  expect(pair->b.cq, 5, IBV_WC_SUCCESS, IBV_WC_RECV);

  ibv_wr_start(qp);
  ibv_wr_send(qp);
  ibv_wr_abort(qp);
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, 0, 0);
  ibv_wr_set_inline_data(qp, pair->a.buffer, 65);
  assert_int_equal(ibv_wr_complete(qp), EINVAL);

  // The queue refuses one request, so none is posted.
  pair->b.buffer[0] = 'a';
  pair->a.buffer[0] = 'b';
  ibv_wr_start(qp);
  qp->wr_id = 4;
  ibv_wr_rdma_write(qp, pair->b.mr->rkey, reinterpret_cast<uintptr_t>(pair->b.buffer));
  ibv_wr_set_sge(qp, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), 1);
  qp->wr_id = 5;
  ibv_wr_send(qp);
  ibv_wr_set_sge(qp, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), UINT32_MAX);
  assert_int_equal(ibv_wr_complete(qp), EINVAL);
  // The queue takes exactly as many as it has room for.
  for (const uint32_t count : {kDepth + 1, kDepth}) {
    ibv_wr_start(qp);
    for (uint32_t i = 0; i < count; i++) {
      qp->wr_id = 100 + i;
      ibv_wr_rdma_write(qp, pair->b.mr->rkey, reinterpret_cast<uintptr_t>(pair->b.buffer) + 8);
      ibv_wr_set_sge(qp, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), 1);
    }
    assert_int_equal(ibv_wr_complete(qp), count == kDepth ? 0 : ENOMEM);
  }
  for (uint32_t i = 0; i < kDepth; i++) expect(pair->a.cq, 100 + i, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_int_equal(pair->b.buffer[0], 'a');

  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(pair->context, &attr);
  assert_non_null(cq);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

void extended__completions_are_read_field_by_field(void**) {
  assert_true(begin({}));
  // The plain interface's CQ has the extended view only if it was made with it.
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  ibv_cq_ex* cq = ibv_create_cq_ex(pair->context, &attr);
  assert_non_null(cq);
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
  init.cap = {4, 4, 1, 1, 0};
  init.qp_type = IBV_QPT_UD;
  ibv_qp* qp = ibv_create_qp(pair->pd, &init);
  assert_non_null(qp);
  assert_true(connect(qp, 0));
  ibv_ah* ah = make_own_address(*pair);
  assert_non_null(ah);
  ibv_sge into = {reinterpret_cast<uintptr_t>(pair->b.buffer), 100, pair->b.mr->lkey};
  ibv_recv_wr receive = {7, nullptr, &into, 1};
  ibv_recv_wr* bad_receive = nullptr;
  assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
  memset(pair->a.buffer, 'u', 10);
  assert_int_equal(post_datagram(pair->a, 10, qp, ah, qp), 0);
  ibv_poll_cq_attr poll_attr = {};
  int error = ENOENT;
  for (const double end = now() + kPatience; error == ENOENT && now() <= end;) error = ibv_start_poll(cq, &poll_attr);
  assert_int_equal(error, 0);
  assert_int_equal(cq->wr_id, 7);
  assert_int_equal(cq->status, IBV_WC_SUCCESS);
  assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
  assert_int_equal(ibv_wc_read_byte_len(cq), 50);
  assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
  assert_int_equal(ibv_wc_read_src_qp(cq), qp->qp_num);
  assert_int_equal(ibv_wc_read_wc_flags(cq), IBV_WC_GRH);
  // With UDP, over IPv4.
  assert_int_equal(ibv_wc_read_sl(cq), 8 | 2);
  assert_int_equal(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  assert_memory_equal(pair->b.buffer + 40, pair->a.buffer, 10);
  assert_int_equal(ibv_destroy_ah(ah), 0);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(extended__operations_that_the_type_lacks_are_refused, finish),
      cmocka_unit_test_teardown(extended__requests_and_completions, finish),
      cmocka_unit_test_teardown(extended__completions_are_read_field_by_field, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
