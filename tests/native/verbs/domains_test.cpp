// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Thread domains and parent domains. Runs under dapple-run.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "tests/native/clock.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

// The program's allocators.
struct Memory {
  ibv_pd* domain = nullptr;  // that each call must name
  int taken = 0;
  int given = 0;
  size_t bytes = 0;  // of all that were taken
  bool is_default = false;
  bool is_empty = false;
};

void* take(ibv_pd* pd, void* context, size_t size, size_t alignment, uint64_t) {
  auto* memory = static_cast<Memory*>(context);
  if (pd != memory->domain || memory->is_empty) return nullptr;
  if (memory->is_default) return IBV_ALLOCATOR_USE_DEFAULT;
  memory->taken++;
  memory->bytes += size;
  return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void give(ibv_pd* pd, void* context, void* pointer, uint64_t) {
  auto* memory = static_cast<Memory*>(context);
  if (pd == memory->domain) memory->given++;
  free(pointer);
}

ibv_td* make_td() {
  ibv_td_init_attr attr = {};
  return ibv_alloc_td(pair->context, &attr);
}

ibv_pd* make_parent(ibv_td* td, Memory* memory = nullptr) {
  ibv_parent_domain_init_attr attr = {};
  attr.pd = pair->pd;
  attr.td = td;
  if (memory != nullptr) {
    attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
    attr.alloc = take;
    attr.free = give;
    attr.pd_context = memory;
  }
  errno = 0;
  ibv_pd* domain = ibv_alloc_parent_domain(pair->context, &attr);
  if (memory != nullptr) memory->domain = domain;
  return domain;
}

ibv_cq_ex* make_cq(ibv_pd* domain) {
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 100;
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = domain;
  errno = 0;
  return ibv_create_cq_ex(pair->context, &attr);
}

ibv_qp* make_qp(ibv_pd* domain, ibv_cq* cq, uint32_t sends = 16) {
  ibv_qp_init_attr_ex attr = {};
  attr.send_cq = attr.recv_cq = cq;
  attr.cap = {sends, 16, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attr.pd = domain;
  attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  errno = 0;
  ibv_qp* qp = ibv_create_qp_ex(pair->context, &attr);
  return qp != nullptr && connect(qp, qp->qp_num) ? qp : nullptr;
}

ibv_wc_status next_status(ibv_cq_ex* cq) {
  ibv_poll_cq_attr attr = {};
  int error = ENOENT;
  for (const double end = now() + kPatience; error == ENOENT && now() <= end;) error = ibv_start_poll(cq, &attr);
  if (error != 0) return IBV_WC_GENERAL_ERR;
  const ibv_wc_status status = cq->status;
  ibv_end_poll(cq);
  return status;
}

// Writes to itself, with keys of the protection domain below.
void write_some(ibv_qp* qp, ibv_cq_ex* cq) {
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  memset(pair->a.buffer, 'p', 100);
  memset(pair->b.buffer, 0, 100);
  for (int i = 0; i < 20; ++i) {
    ibv_wr_start(extended);
    ibv_wr_rdma_write(extended, pair->b.mr->rkey, reinterpret_cast<uintptr_t>(pair->b.buffer));
    ibv_wr_set_sge(extended, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), 100);
    assert_int_equal(ibv_wr_complete(extended), 0);
    assert_int_equal(next_status(cq), IBV_WC_SUCCESS);
  }
  assert_memory_equal(pair->a.buffer, pair->b.buffer, 100);
  ibv_wr_start(extended);
  ibv_wr_abort(extended);
}

void parent_domain__objects_of_a_thread_work_with_those_of_its_domain(void**) {
  assert_true(begin({}));
  ibv_td* td = make_td();
  ibv_pd* domain = make_parent(td);
  assert_true(td != nullptr && domain != nullptr);
  ibv_cq_ex* cq = make_cq(domain);
  assert_non_null(cq);
  ibv_qp* qp = make_qp(domain, ibv_cq_ex_to_cq(cq));
  assert_non_null(qp);
  write_some(qp, cq);
  ibv_mr* mr = ibv_reg_mr(domain, pair->a.buffer, 100, int{IBV_ACCESS_LOCAL_WRITE});
  assert_non_null(mr);
  // None goes before those that need it.
  assert_int_equal(ibv_dealloc_pd(pair->pd), EBUSY);
  assert_int_equal(ibv_dealloc_td(td), EBUSY);
  assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_dealloc_pd(domain), EBUSY);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  // One over another has the same protection domain.
  ibv_parent_domain_init_attr attr = {};
  attr.pd = domain;
  ibv_pd* higher = ibv_alloc_parent_domain(pair->context, &attr);
  assert_non_null(higher);
  assert_int_equal(ibv_dealloc_pd(higher), 0);
  assert_int_equal(ibv_dealloc_pd(domain), 0);
  assert_int_equal(ibv_dealloc_td(td), 0);
}

// A lock would make the thread wait for itself, and the test would end by its time limit.
void thread_domain__posts_and_polls_take_no_lock(void**) {
  assert_true(begin({}));
  ibv_td* td = make_td();
  ibv_pd* domain = make_parent(td);
  ibv_cq_ex* cq = make_cq(domain);
  assert_non_null(cq);
  ibv_qp* qp = make_qp(domain, ibv_cq_ex_to_cq(cq));
  assert_non_null(qp);
  ibv_qp_ex* extended = ibv_qp_to_qp_ex(qp);
  ibv_wr_start(extended);
  ibv_wr_start(extended);
  ibv_wr_abort(extended);
  write_some(qp, cq);
  for (uint64_t id = 0; id < 2; ++id) {
    ibv_wr_start(extended);
    extended->wr_id = id;
    ibv_wr_rdma_write(extended, pair->b.mr->rkey, reinterpret_cast<uintptr_t>(pair->b.buffer));
    ibv_wr_set_sge(extended, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), 100);
    assert_int_equal(ibv_wr_complete(extended), 0);
  }
  ibv_poll_cq_attr attr = {};
  for (uint64_t id = 0; id < 2; ++id) {
    int error = ENOENT;
    for (const double end = now() + kPatience; error == ENOENT && now() <= end;) error = ibv_start_poll(cq, &attr);
    assert_int_equal(error, 0);
    assert_int_equal(cq->wr_id, id);
  }
  ibv_end_poll(cq);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  assert_int_equal(ibv_dealloc_pd(domain), 0);
  assert_int_equal(ibv_dealloc_td(td), 0);
}

void parent_domain__queues_live_in_the_programs_memory(void**) {
  assert_true(begin({}));
  Memory memory;
  ibv_pd* domain = make_parent(nullptr, &memory);
  assert_non_null(domain);
  ibv_cq_ex* cq = make_cq(domain);
  assert_non_null(cq);
  const int of_cq = memory.taken;
  const size_t of_first = memory.bytes;
  assert_true(of_cq > 0);
  ibv_qp* qp = make_qp(domain, ibv_cq_ex_to_cq(cq));
  assert_non_null(qp);
  const int of_qp = memory.taken;
  assert_true(of_qp > of_cq);
  // A deeper send queue needs more of it.
  const size_t of_shallow = memory.bytes - of_first;
  ibv_qp* deep = make_qp(domain, ibv_cq_ex_to_cq(cq), 1000);
  assert_non_null(deep);
  assert_true(memory.bytes - of_first - of_shallow >= of_shallow + 900 * 64);
  assert_int_equal(ibv_destroy_qp(deep), 0);
  ibv_srq_init_attr srq_attr = {nullptr, {16, 1, 0}};
  ibv_srq* srq = ibv_create_srq(domain, &srq_attr);
  assert_non_null(srq);
  assert_true(memory.taken > of_qp);
  write_some(qp, cq);
  assert_int_equal(ibv_destroy_srq(srq), 0);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  assert_int_equal(memory.given, memory.taken);
  // The program leaves it to the device, or has none.
  memory.is_default = true;
  qp = make_qp(domain, pair->a.cq);
  assert_non_null(qp);
  assert_int_equal(ibv_destroy_qp(qp), 0);
  cq = make_cq(domain);
  assert_non_null(cq);
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  assert_int_equal(memory.given, memory.taken);
  memory.is_empty = true;
  assert_null(make_cq(domain));
  assert_int_equal(errno, ENOMEM);
  assert_null(make_qp(domain, pair->a.cq));
  assert_int_equal(errno, ENOMEM);
  assert_null(ibv_create_srq(domain, &srq_attr));
  assert_int_equal(ibv_dealloc_pd(domain), 0);
}

// IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC of newer headers: the device needs no such memory.
void parent_domain__may_allow_unprotected_memory(void**) {
  assert_true(begin({}));
  ibv_parent_domain_init_attr attr = {};
  attr.pd = pair->pd;
  attr.comp_mask = 4;
  ibv_pd* domain = ibv_alloc_parent_domain(pair->context, &attr);
  assert_non_null(domain);
  assert_int_equal(ibv_dealloc_pd(domain), 0);
}

void domains__bad_input_is_refused(void**) {
  assert_true(begin({}));
  ibv_td_init_attr td_attr = {};
  td_attr.comp_mask = 1;
  assert_null(ibv_alloc_td(pair->context, &td_attr));
  assert_int_equal(errno, EINVAL);
  ibv_parent_domain_init_attr attr = {};
  assert_null(ibv_alloc_parent_domain(pair->context, &attr));  // without a protection domain
  assert_int_equal(errno, EINVAL);
  attr.pd = pair->pd;
  attr.comp_mask = 8;
  assert_null(ibv_alloc_parent_domain(pair->context, &attr));
  attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
  attr.alloc = take;
  assert_null(ibv_alloc_parent_domain(pair->context, &attr));  // nothing to free with
  ibv_context* other = ibv_open_device(pair->context->device);
  assert_non_null(other);
  attr.comp_mask = 0;
  assert_null(ibv_alloc_parent_domain(other, &attr));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_close_device(other), 0);
  // A protection domain is no parent domain.
  assert_null(make_cq(pair->pd));
  assert_int_equal(errno, EINVAL);
}

// A region and its domain belong to one open device. Refused, the region is as before.
void rereg__domain_of_another_open_device_is_refused(void**) {
  assert_true(begin({}));
  ibv_context* other = ibv_open_device(pair->context->device);
  assert_non_null(other);
  ibv_pd* others = ibv_alloc_pd(other);
  assert_non_null(others);
  for (ibv_pd* wrong : {others, static_cast<ibv_pd*>(nullptr)}) {
    errno = 0;
    assert_int_equal(ibv_rereg_mr(pair->b.mr, IBV_REREG_MR_CHANGE_PD, wrong, nullptr, 0, 0), IBV_REREG_MR_ERR_CMD);
    assert_int_equal(errno, EINVAL);
  }
  assert_int_equal(ibv_dealloc_pd(others), 0);
  assert_int_equal(ibv_close_device(other), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 64, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(parent_domain__objects_of_a_thread_work_with_those_of_its_domain, finish),
      cmocka_unit_test_teardown(thread_domain__posts_and_polls_take_no_lock, finish),
      cmocka_unit_test_teardown(parent_domain__queues_live_in_the_programs_memory, finish),
      cmocka_unit_test_teardown(parent_domain__may_allow_unprotected_memory, finish),
      cmocka_unit_test_teardown(domains__bad_input_is_refused, finish),
      cmocka_unit_test_teardown(rereg__domain_of_another_open_device_is_refused, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
