// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The keys of memory windows, and binds and invalidations that fail. Runs under dapple-run.
#include <errno.h>
#include <stdint.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr unsigned kRights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

bool begin_with_windows(uint64_t operations = 0) {
  PairOptions options;
  options.windows = true;
  options.operations = operations;
  return begin(options);
}

ibv_mw_bind_info whole_buffer(End& end) {
  return {end.mr, reinterpret_cast<uintptr_t>(end.buffer), kBufferSize, kRights};
}

// Returns 0 or an errno.
int post_bind(End& end, uint64_t id, ibv_mw* window, uint32_t rkey, const ibv_mw_bind_info& info) {
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = id;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = window;
  request.bind_mw.rkey = rkey;
  request.bind_mw.bind_info = info;
  return ibv_post_send(end.qp, &request, &bad);
}

int post_invalidation(End& end, uint64_t id, ibv_wr_opcode opcode, uint32_t rkey) {
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = id;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.invalidate_rkey = rkey;
  return ibv_post_send(end.qp, &request, &bad);
}

// A Write of end a by this key of end b's memory.
int post_write(uint64_t id, uint32_t rkey) {
  const uint32_t of_region = pair->b.mr->rkey;
  pair->b.mr->rkey = rkey;
  const int error = post_send(pair->a, id, IBV_WR_RDMA_WRITE, 0, 1, &pair->b);
  pair->b.mr->rkey = of_region;
  return error;
}

bool renew(const PairOptions& options) {
  finish(nullptr);
  return begin(options);
}

// The program chooses the lowest byte of the key, and nothing else: every choice works, also that of the present key.
void type_2__every_choice_of_a_key__is_bound_and_shown(void**) {
  assert_true(begin_with_windows());
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2);
  assert_non_null(window);
  const uint32_t fresh = window->rkey;
  const uint32_t index = fresh & ~0xFFu;
  for (const uint32_t choice : {fresh, fresh, ibv_inc_rkey(fresh), fresh & 0xFF, 0u, 0xBAu, 0xFFu, 1024u, ~fresh}) {
    assert_int_equal(post_bind(pair->b, 1, window, choice, whole_buffer(pair->b)), 0);
    assert_int_equal(window->rkey, index | (choice & 0xFF));
    expect(pair->b.cq, 1, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
    pair->a.buffer[0]++;
    assert_int_equal(post_write(2, window->rkey), 0);
    expect(pair->a.cq, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    assert_int_equal(pair->b.buffer[0], pair->a.buffer[0]);
    assert_int_equal(post_invalidation(pair->b, 3, IBV_WR_LOCAL_INV, window->rkey), 0);
    expect(pair->b.cq, 3, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
  }
  assert_int_equal(ibv_dealloc_mw(window), 0);
}

void type_2__extended_interface__every_choice_of_a_key(void**) {
  assert_true(begin_with_windows(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV));
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2);
  assert_non_null(window);
  const uint32_t fresh = window->rkey;
  const ibv_mw_bind_info info = whole_buffer(pair->a);
  ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair->a.qp);
  assert_non_null(qp);
  for (const uint32_t choice : {fresh, 0xBAu, 0u}) {
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(qp, window, choice, &info);
    assert_int_equal(ibv_wr_complete(qp), 0);
    assert_int_equal(window->rkey, (fresh & ~0xFFu) | (choice & 0xFF));
    expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
    ibv_wr_start(qp);
    qp->wr_id = 2;
    ibv_wr_local_inv(qp, window->rkey);
    assert_int_equal(ibv_wr_complete(qp), 0);
    expect(pair->a.cq, 2, IBV_WC_SUCCESS, IBV_WC_LOCAL_INV);
  }
  // A list that is not posted changes no key.
  const uint32_t before = window->rkey;
  ibv_wr_start(qp);
  ibv_wr_bind_mw(qp, window, before + 1, &info);
  ibv_wr_bind_mw(qp, window, before + 2, &info);
  ibv_wr_abort(qp);
  assert_int_equal(window->rkey, before);
  ibv_wr_start(qp);
  ibv_wr_bind_mw(qp, window, before + 1, &info);
  for (uint32_t i = 0; i < 4 * kDepth; ++i) ibv_wr_send(qp);
  assert_int_equal(ibv_wr_complete(qp), ENOMEM);
  assert_int_equal(window->rkey, before);
  assert_int_equal(ibv_dealloc_mw(window), 0);
}

// A bind that is not possible is an error of its completion, and of the queue pair.
void bind__not_possible__completes_with_an_error(void**) {
  PairOptions options;
  options.windows = true;
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    for (int mistake = 0; mistake < 4; ++mistake) {
      // libibverbs itself compares the domains of window and region for a window of type 1.
      const bool strange_region = mistake >= 2,
                 strange_window = mistake == 3 || (mistake == 2 && type == IBV_MW_TYPE_1);
      assert_true(pair == nullptr ? begin(options) : renew(options));
      ibv_pd* other = ibv_alloc_pd(pair->context);
      assert_non_null(other);
      ibv_mr* region = ibv_reg_mr(strange_region ? other : pair->pd, pair->b.buffer, kBufferSize,
                                  IBV_ACCESS_LOCAL_WRITE | (mistake == 0 ? 0 : IBV_ACCESS_MW_BIND));
      ibv_mw* window = ibv_alloc_mw(strange_window ? other : pair->pd, type);
      assert_non_null(region);
      assert_non_null(window);
      ibv_mw_bind_info info = whole_buffer(pair->b);
      info.mr = region;
      if (mistake == 1) info.length++;
      if (type == IBV_MW_TYPE_1) {
        ibv_mw_bind bind = {9, 0, info};
        assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), 0);
      } else {
        assert_int_equal(post_bind(pair->b, 9, window, window->rkey, info), 0);
      }
      expect(pair->b.cq, 9, IBV_WC_MW_BIND_ERR, IBV_WC_BIND_MW);
      ibv_qp_attr attr = {};
      ibv_qp_init_attr init = {};
      assert_int_equal(ibv_query_qp(pair->b.qp, &attr, IBV_QP_STATE, &init), 0);
      assert_int_equal(attr.qp_state, IBV_QPS_ERR);
      assert_int_equal(ibv_dealloc_mw(window), 0);
      assert_int_equal(ibv_dereg_mr(region), 0);
      assert_int_equal(ibv_dealloc_pd(other), 0);
    }
  }
}

void bind__wrong_arguments__refused_at_once(void**) {
  assert_true(begin_with_windows());
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
  assert_non_null(window);
  const uint32_t before = window->rkey;
  ibv_mw_bind bind = {9, 0, whole_buffer(pair->b)};
  bind.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
  assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), EINVAL);
  bind.bind_info = whole_buffer(pair->b);
  bind.bind_info.mr = nullptr;
  assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), EINVAL);
  // A window of type 1 has its own verb.
  assert_int_equal(post_bind(pair->b, 9, window, window->rkey, whole_buffer(pair->b)), EINVAL);
  // A window of another open device, whose keys may be the same.
  ibv_context* context = open_loopback();
  assert_non_null(context);
  ibv_pd* pd = ibv_alloc_pd(context);
  assert_non_null(pd);
  for (const ibv_mw_type type : {IBV_MW_TYPE_1, IBV_MW_TYPE_2}) {
    ibv_mw* strange = ibv_alloc_mw(pd, type);
    assert_non_null(strange);
    // Of a region of that device, too, which libibverbs demands.
    ibv_mr* region = ibv_reg_mr(pd, pair->b.buffer, kBufferSize, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    assert_non_null(region);
    bind.bind_info = whole_buffer(pair->b);
    bind.bind_info.mr = region;
    const int error = type == IBV_MW_TYPE_1 ? ibv_bind_mw(pair->b.qp, strange, &bind)
                                            : post_bind(pair->b, 9, strange, strange->rkey, whole_buffer(pair->b));
    assert_int_equal(error, EINVAL);
    assert_int_equal(ibv_dealloc_mw(strange), 0);
    assert_int_equal(ibv_dereg_mr(region), 0);
  }
  // IBTA 10.6.7.2: windows belong to connections.
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->b.cq;
  init.cap = {1, 0, 1, 0, 0};
  init.qp_type = IBV_QPT_UD;
  static End datagrams;
  datagrams.qp = ibv_create_qp(pair->pd, &init);
  assert_non_null(datagrams.qp);
  bind.bind_info = whole_buffer(pair->b);
  assert_int_equal(ibv_bind_mw(datagrams.qp, window, &bind), EINVAL);
  ibv_mw* other = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2);
  assert_non_null(other);
  assert_int_equal(post_bind(datagrams, 9, other, other->rkey, whole_buffer(pair->b)), EINVAL);
  assert_int_equal(ibv_dealloc_mw(other), 0);
  assert_int_equal(ibv_destroy_qp(datagrams.qp), 0);
  assert_int_equal(window->rkey, before);
  assert_int_equal(ibv_dealloc_pd(pd), 0);
  assert_int_equal(ibv_close_device(context), 0);
  assert_int_equal(ibv_dealloc_mw(window), 0);
}

// IBTA 9.9.6.3, class J: the responder fails and sends no NAK, so the requester learns of it by its retries.
void send_with_invalidate__wrong_key__receiver_fails_and_sender_retries(void**) {
  assert_true(begin({}));
  assert_int_equal(post_receive(pair->b, 1, 0, 10), 0);
  assert_int_equal(post_receive(pair->b, 2, 0, 10), 0);
  assert_int_equal(post_invalidation(pair->a, 3, IBV_WR_SEND_WITH_INV, pair->b.mr->rkey), 0);
  expect(pair->b.cq, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_RECV);
  expect(pair->b.cq, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  expect(pair->a.cq, 3, IBV_WC_RETRY_EXC_ERR, IBV_WC_SEND);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(type_2__every_choice_of_a_key__is_bound_and_shown, finish),
      cmocka_unit_test_teardown(type_2__extended_interface__every_choice_of_a_key, finish),
      cmocka_unit_test_teardown(bind__not_possible__completes_with_an_error, finish),
      cmocka_unit_test_teardown(bind__wrong_arguments__refused_at_once, finish),
      cmocka_unit_test_teardown(send_with_invalidate__wrong_key__receiver_fails_and_sender_retries, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
