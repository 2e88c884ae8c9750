// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The room of queues: as much as the device has granted, which is more than the program has asked for. Runs under
// dapple-run.
#include <errno.h>
#include <stdint.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

struct Granted {
  uint32_t asked;
  uint32_t granted;
};
// The numbers are rxe's.
constexpr Granted kDepths[] = {{1, 1}, {2, 3}, {3, 3}, {4, 7}, {15, 15}, {16, 31}, {31, 31}, {100, 127}};

ibv_qp* make_qp(uint32_t sends, uint32_t receives, ibv_qp_init_attr& init) {
  init = {};
  init.send_cq = init.recv_cq = pair->a.cq;
  init.cap = {sends, receives, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  return ibv_create_qp(pair->pd, &init);
}

int post_nothing(ibv_qp* qp) {
  ibv_recv_wr request = {}, *bad = nullptr;
  return ibv_post_recv(qp, &request, &bad);
}

void queue_pairs__have_the_granted_room(void**) {
  assert_true(begin({}));
  for (const Granted& depth : kDepths) {
    ibv_qp_init_attr init;
    ibv_qp* qp = make_qp(depth.asked, depth.asked, init);
    assert_non_null(qp);
    assert_int_equal(init.cap.max_send_wr, depth.granted);
    assert_int_equal(init.cap.max_recv_wr, depth.granted);
    ibv_qp_attr attr = {};
    ibv_qp_init_attr shown = {};
    assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &shown), 0);
    assert_int_equal(attr.cap.max_send_wr, depth.granted);
    assert_int_equal(shown.cap.max_recv_wr, depth.granted);
    // The peer has no receives and waits for ever, so the requests stay.
    assert_true(connect(qp, pair->b.qp->qp_num));
    for (uint32_t i = 0; i < depth.granted; ++i) assert_int_equal(post_nothing(qp), 0);
    assert_int_equal(post_nothing(qp), ENOMEM);
    ibv_send_wr request = {}, *bad = nullptr;
    request.opcode = IBV_WR_SEND;
    for (uint32_t i = 0; i < depth.granted; ++i) assert_int_equal(ibv_post_send(qp, &request, &bad), 0);
    assert_int_equal(ibv_post_send(qp, &request, &bad), ENOMEM);
    assert_int_equal(ibv_destroy_qp(qp), 0);
  }
  // No room stays no room.
  ibv_qp_init_attr init;
  ibv_qp* qp = make_qp(0, 0, init);
  assert_non_null(qp);
  assert_int_equal(init.cap.max_send_wr, 0);
  assert_int_equal(init.cap.max_recv_wr, 0);
  assert_true(connect(qp, pair->b.qp->qp_num));
  assert_int_equal(post_nothing(qp), ENOMEM);
  ibv_send_wr request = {}, *bad = nullptr;
  request.opcode = IBV_WR_SEND;
  assert_int_equal(ibv_post_send(qp, &request, &bad), ENOMEM);
  assert_int_equal(ibv_destroy_qp(qp), 0);
}

void shared_receive_queues__have_the_granted_room(void**) {
  assert_true(begin({}));
  ibv_recv_wr request = {}, *bad = nullptr;
  for (const Granted& depth : kDepths) {
    ibv_srq_init_attr init = {nullptr, {depth.asked, 1, 0}};
    ibv_srq* srq = ibv_create_srq(pair->pd, &init);
    assert_non_null(srq);
    assert_int_equal(init.attr.max_wr, depth.granted);
    ibv_srq_attr attr = {};
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.max_wr, depth.granted);
    for (uint32_t i = 0; i < depth.granted; ++i) assert_int_equal(ibv_post_srq_recv(srq, &request, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(srq, &request, &bad), ENOMEM);
    assert_ptr_equal(bad, &request);
    // The limit may be as much as there is room, and a new size is granted in the same way.
    attr = {0, 0, depth.granted};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
    attr.srq_limit++;
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
    attr = {depth.granted + 1, 0, 0};
    assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(ibv_query_srq(srq, &attr), 0);
    assert_int_equal(attr.max_wr, 2 * depth.granted + 1);
    for (uint32_t i = depth.granted; i < attr.max_wr; ++i) assert_int_equal(ibv_post_srq_recv(srq, &request, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(srq, &request, &bad), ENOMEM);
    assert_int_equal(ibv_destroy_srq(srq), 0);
  }
}

void completion_queues__have_the_granted_room(void**) {
  assert_true(begin({}));
  for (const Granted& depth : kDepths) {
    const auto asked = static_cast<int>(depth.asked), granted = static_cast<int>(depth.granted);
    ibv_cq* cq = ibv_create_cq(pair->context, asked, nullptr, nullptr, 0);
    assert_non_null(cq);
    assert_int_equal(cq->cqe, granted);
    assert_int_equal(ibv_resize_cq(cq, granted + 1), 0);
    assert_int_equal(cq->cqe, 2 * granted + 1);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    ibv_cq_init_attr_ex attr = {};
    attr.cqe = depth.asked;
    ibv_cq_ex* extended = ibv_create_cq_ex(pair->context, &attr);
    assert_non_null(extended);
    assert_int_equal(ibv_cq_ex_to_cq(extended)->cqe, granted);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)), 0);
  }
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(queue_pairs__have_the_granted_room, finish),
      cmocka_unit_test_teardown(shared_receive_queues__have_the_granted_room, finish),
      cmocka_unit_test_teardown(completion_queues__have_the_granted_room, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
