// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Requests that fail in their turn, atomics with long lists, and the protection domain of a shared receive queue. Runs
// under dapple-run.
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

bool begin_with(ibv_qp_type type) {
  PairOptions options;
  options.type = type;
  return begin(options);
}

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 ? attr.qp_state : IBV_QPS_UNKNOWN;
}

bool to_rts(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RTS;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

// The post succeeds, because IBTA 11.6.2 has a status of completions for it, as with the drivers of NICs.
void operations__that_the_transport_lacks__complete_with_an_error(void**) {
  constexpr ibv_wr_opcode kOfDatagrams[] = {
      IBV_WR_RDMA_WRITE,           IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
      IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV,       IBV_WR_LOCAL_INV};
  assert_true(begin_with(IBV_QPT_UD));
  for (const ibv_wr_opcode opcode : kOfDatagrams) {
    assert_int_equal(post_send(pair->a, 1, opcode, 0, 8, &pair->b), 0);
    expect(pair->a.cq, 1, IBV_WC_LOC_QP_OP_ERR, IBV_WC_SEND);
    assert_int_equal(state_of(pair->a.qp), IBV_QPS_SQE);
    assert_true(to_rts(pair->a.qp));
  }
  finish(nullptr);
  assert_true(begin_with(IBV_QPT_UC));
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_SEND_WITH_INV}) {
    assert_int_equal(post_send(pair->a, 1, opcode, 0, 8, &pair->b), 0);
    expect(pair->a.cq, 1, IBV_WC_LOC_QP_OP_ERR, IBV_WC_SEND);
    assert_int_equal(state_of(pair->a.qp), IBV_QPS_SQE);
    assert_true(to_rts(pair->a.qp));
  }
  // This is no operation of any transport.
  assert_int_equal(post_send(pair->a, 1, IBV_WR_TSO, 0, 8, &pair->b), EINVAL);
}

// C10-10.
void datagram__address_of_another_domain__completes_with_an_error(void**) {
  assert_true(begin_with(IBV_QPT_UD));
  ibv_pd* other = ibv_alloc_pd(pair->context);
  assert_non_null(other);
  ibv_pd* own = pair->pd;
  pair->pd = other;
  ibv_ah* foreign = make_own_address(*pair);
  pair->pd = own;
  ibv_ah* address = make_own_address(*pair);
  assert_non_null(foreign);
  assert_non_null(address);
  assert_int_equal(post_receive(pair->b, 5, 0, 1000), 0);
  assert_int_equal(post_datagram(pair->a, 10, pair->a.qp, foreign, pair->b.qp), 0);
  ibv_wc completion = {};
  assert_true(wait_for(pair->a.cq, completion));
  assert_int_equal(completion.status, IBV_WC_LOC_QP_OP_ERR);
  assert_int_equal(state_of(pair->a.qp), IBV_QPS_SQE);
  assert_true(to_rts(pair->a.qp));
  assert_int_equal(post_datagram(pair->a, 10, pair->a.qp, address, pair->b.qp), 0);
  expect(pair->b.cq, 5, IBV_WC_SUCCESS, IBV_WC_RECV);
  assert_int_equal(ibv_destroy_ah(foreign), 0);
  assert_int_equal(ibv_destroy_ah(address), 0);
  assert_int_equal(ibv_dealloc_pd(other), 0);
}

int post_atomic(ibv_wr_opcode opcode, const ibv_sge* list, int count) {
  ibv_sge segments[3] = {};
  memcpy(segments, list, sizeof(ibv_sge) * static_cast<size_t>(count));
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = 1;
  request.sg_list = segments;
  request.num_sge = count;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.atomic.rkey = pair->b.mr->rkey;
  request.wr.atomic.compare_add = 1;
  return ibv_post_send(pair->a.qp, &request, &bad);
}

// A list of at least eight bytes takes the result; the other bytes stay.
void atomics__lists_of_other_lengths(void**) {
  assert_true(begin({}));
  const uint64_t value = 0x0102030405060708;
  const auto at = [](size_t offset) { return reinterpret_cast<uintptr_t>(pair->a.buffer + offset); };
  const uint32_t key = pair->a.mr->lkey;
  for (const ibv_wr_opcode opcode : {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    const ibv_sge lists[][2] = {{{at(0), 9, key}, {}},
                                {{at(0), 4096, key}, {}},
                                {{at(0), 3, key}, {at(3), 6, key}},
                                // The result ends before the bytes that are not registered.
                                {{at(0), 8, key}, {0, 8, 0}},
                                {{at(kBufferSize - 8), 100, key}, {}}};
    for (const ibv_sge(&list)[2] : lists) {
      memcpy(pair->b.buffer, &value, sizeof value);
      memset(pair->a.buffer, 0x55, 16);
      assert_int_equal(post_atomic(opcode, list, list[1].length != 0 ? 2 : 1), 0);
      ibv_wc completion = {};
      assert_true(wait_for(pair->a.cq, completion));
      assert_int_equal(completion.status, IBV_WC_SUCCESS);
      assert_int_equal(completion.byte_len, 8);
      assert_memory_equal(reinterpret_cast<const char*>(list[0].addr), &value, list[0].length < 8 ? 3 : 8);
      if (list[0].addr != at(0)) continue;
      assert_memory_equal(pair->a.buffer, &value, 8);
      assert_int_equal(pair->a.buffer[8], 0x55);
    }
    const ibv_sge few[] = {{at(0), 3, key}, {at(3), 4, key}};
    assert_int_equal(post_atomic(opcode, few, 2), EINVAL);
    assert_int_equal(post_atomic(opcode, few, 0), EINVAL);
  }
}

// Receives of a shared queue use memory of that queue's protection domain, whatever the queue pair's is.
void srq__of_another_domain(void**) {
  for (const bool matches : {true, false}) {
    assert_true(begin({}));
    ibv_pd* other = ibv_alloc_pd(pair->context);
    assert_non_null(other);
    ibv_srq_init_attr srq_init = {nullptr, {4, 1, 0}};
    ibv_srq* srq = ibv_create_srq(other, &srq_init);
    assert_non_null(srq);
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = pair->b.cq;
    init.srq = srq;
    init.cap = {4, 0, 1, 0, 0};
    init.qp_type = IBV_QPT_RC;
    ibv_qp* qp = ibv_create_qp(pair->pd, &init);
    assert_non_null(qp);
    assert_true(to_error(pair->a.qp));
    ibv_qp_attr attr = {};
    assert_int_equal(ibv_modify_qp(pair->a.qp, &attr, IBV_QP_STATE), 0);
    assert_true(connect(pair->a.qp, qp->qp_num) && connect(qp, pair->a.qp->qp_num));

    static char memory[4096];
    ibv_mr* region = ibv_reg_mr(matches ? other : pair->pd, memory, sizeof memory, int{IBV_ACCESS_LOCAL_WRITE});
    assert_non_null(region);
    ibv_sge segment = {reinterpret_cast<uintptr_t>(memory), 100, region->lkey};
    ibv_recv_wr receive = {}, *bad = nullptr;
    receive.wr_id = 7;
    receive.sg_list = &segment;
    receive.num_sge = 1;
    assert_int_equal(ibv_post_srq_recv(srq, &receive, &bad), 0);
    pair->a.buffer[0] = 's';
    assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 10), 0);
    expect(pair->b.cq, 7, matches ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR, IBV_WC_RECV);
    expect(pair->a.cq, 1, matches ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR, IBV_WC_SEND);
    if (matches) {
      assert_int_equal(memory[0], 's');
      // The keys of peers are those of the queue pair's domain.
      assert_int_equal(post_send(pair->a, 2, IBV_WR_RDMA_WRITE, 0, 10, &pair->b), 0);
      expect(pair->a.cq, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_dereg_mr(region), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
    finish(nullptr);
  }
}

// Nor does a newer libibverbs get an order by its flags (1 asks for the parts that are in order, 2 for the device
// alone).
void data_in_order__is_promised_for_no_operation(void**) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    assert_true(begin_with(type));
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_RDMA_READ}) {
      for (uint32_t flags = 0; flags < 4; ++flags)
        assert_int_equal(ibv_query_qp_data_in_order(pair->a.qp, opcode, flags), 0);
    }
    finish(nullptr);
  }
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(operations__that_the_transport_lacks__complete_with_an_error, finish),
      cmocka_unit_test_teardown(datagram__address_of_another_domain__completes_with_an_error, finish),
      cmocka_unit_test_teardown(atomics__lists_of_other_lengths, finish),
      cmocka_unit_test_teardown(srq__of_another_domain, finish),
      cmocka_unit_test_teardown(data_in_order__is_promised_for_no_operation, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
