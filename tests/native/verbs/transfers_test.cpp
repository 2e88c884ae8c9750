// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Transfers of the software device between two queue pairs of this process over lo: data, completions, receives from an
// SRQ, windows. Runs under dapple-run.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

void rc__send_write_read_atomics(void**) {
  assert_true(begin({}));
  End& a = pair->a;
  End& b = pair->b;
  for (size_t i = 0; i < kBufferSize / 2; ++i) a.buffer[i] = static_cast<char>(i * 7 + 1);
  assert_int_equal(post_receive(b, 10, 0, 20000), 0);
  assert_int_equal(post_send(a, 1, IBV_WR_SEND_WITH_IMM, 0, 19999), 0);
  expect(a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  ibv_wc completion = {};
  assert_true(wait_for(b.cq, completion));
  assert_int_equal(completion.opcode, IBV_WC_RECV);
  assert_int_equal(completion.byte_len, 19999);
  assert_int_equal(completion.wc_flags, IBV_WC_WITH_IMM);
  assert_int_equal(completion.imm_data, 0x12345678);
  assert_int_equal(completion.qp_num, b.qp->qp_num);
  assert_memory_equal(a.buffer, b.buffer, 19999);

  assert_int_equal(post_send(a, 2, IBV_WR_RDMA_WRITE, 100, 30001, &b, 32768), 0);
  expect(a.cq, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_memory_equal(a.buffer + 100, b.buffer + 32768, 30001);

  assert_int_equal(post_send(a, 3, IBV_WR_RDMA_READ, 40000, 10000, &b, 32768), 0);
  expect(a.cq, 3, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
  assert_memory_equal(a.buffer + 40000, b.buffer + 32768, 10000);

  uint64_t word = 40;
  memcpy(b.buffer + 8, &word, sizeof(word));
  ibv_sge segment = {reinterpret_cast<uintptr_t>(a.buffer), 8, a.mr->lkey};
  ibv_send_wr request = {};
  ibv_send_wr* bad = nullptr;
  request.wr_id = 4;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(b.buffer) + 8;
  request.wr.atomic.rkey = b.mr->rkey;
  request.wr.atomic.compare_add = 2;
  assert_int_equal(ibv_post_send(a.qp, &request, &bad), 0);
  expect(a.cq, 4, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD);
  memcpy(&word, a.buffer, sizeof(word));
  assert_int_equal(word, 40);
  request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  request.wr.atomic.compare_add = 42;
  request.wr.atomic.swap = 7;
  assert_int_equal(ibv_post_send(a.qp, &request, &bad), 0);
  expect(a.cq, 4, IBV_WC_SUCCESS, IBV_WC_COMP_SWAP);
  memcpy(&word, a.buffer, sizeof(word));
  assert_int_equal(word, 42);
  memcpy(&word, b.buffer + 8, sizeof(word));
  assert_int_equal(word, 7);
}

struct Adder {
  uint64_t* word;
  uint64_t added;
  bool stop;
};

// Programs have lists in packed structs.
ibv_sge* at_odd_address(char* room, std::initializer_list<ibv_sge> segments) {
  memcpy(room + 1, segments.begin(), segments.size() * sizeof(ibv_sge));
  return reinterpret_cast<ibv_sge*>(room + 1);
}

void lists__at_odd_addresses(void**) {
  assert_true(begin({}));
  End& a = pair->a;
  End& b = pair->b;
  const auto from = reinterpret_cast<uintptr_t>(a.buffer), to = reinterpret_cast<uintptr_t>(b.buffer);
  for (size_t i = 0; i < 1000; ++i) a.buffer[i] = static_cast<char>(i * 5 + 1);
  char room[2 * sizeof(ibv_sge) + 1];
  ibv_recv_wr receive = {.wr_id = 10, .next = nullptr, .sg_list = nullptr, .num_sge = 2};
  receive.sg_list = at_odd_address(room, {{to + 500, 300, b.mr->lkey}, {to + 2000, 700, b.mr->lkey}});
  ibv_recv_wr* bad_receive = nullptr;
  assert_int_equal(ibv_post_recv(b.qp, &receive, &bad_receive), 0);

  ibv_send_wr request = {};
  ibv_send_wr* bad = nullptr;
  request.wr_id = 1;
  request.sg_list = at_odd_address(room, {{from, 600, a.mr->lkey}, {from + 600, 400, a.mr->lkey}});
  request.num_sge = 2;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  assert_int_equal(ibv_post_send(a.qp, &request, &bad), 0);
  expect(a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect(b.cq, 10, IBV_WC_SUCCESS, IBV_WC_RECV);
  assert_memory_equal(a.buffer, b.buffer + 500, 300);
  assert_memory_equal(a.buffer + 300, b.buffer + 2000, 700);
}

void* add_until_stopped(void* argument) {
  auto* adder = static_cast<Adder*>(argument);
  while (!__atomic_load_n(&adder->stop, __ATOMIC_RELAXED)) {
    __atomic_fetch_add(adder->word, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&adder->added, 1, __ATOMIC_RELEASE);
  }
  return nullptr;
}

// IBV_ATOMIC_GLOB: atomic with the CPU's operations as well.
void atomics__beside_those_of_the_cpu_lose_nothing(void**) {
  constexpr uint64_t kAdds = 300;
  assert_true(begin({}));
  End& a = pair->a;
  ibv_device_attr attr = {};
  assert_int_equal(ibv_query_device(pair->context, &attr), 0);
  assert_int_equal(attr.atomic_cap, IBV_ATOMIC_GLOB);
  auto* word = reinterpret_cast<uint64_t*>(pair->b.buffer);
  Adder adder = {word, 0, false};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, nullptr, add_until_stopped, &adder), 0);
  while (__atomic_load_n(&adder.added, __ATOMIC_ACQUIRE) == 0) sched_yield();
  ibv_sge segment = {reinterpret_cast<uintptr_t>(a.buffer), 8, a.mr->lkey};
  ibv_send_wr request = {};
  ibv_send_wr* bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(word);
  request.wr.atomic.rkey = pair->b.mr->rkey;
  request.wr.atomic.compare_add = 1;
  uint64_t done = 0;
  ibv_wc completion = {};
  while (done < kAdds && ibv_post_send(a.qp, &request, &bad) == 0 && wait_for(a.cq, completion) &&
         completion.status == IBV_WC_SUCCESS) {
    done++;
  }
  __atomic_store_n(&adder.stop, true, __ATOMIC_RELAXED);
  pthread_join(thread, nullptr);
  assert_int_equal(done, kAdds);
  assert_true(*word == adder.added + kAdds);
}

void write__arrives_where_nobody_polls(void**) {
  assert_true(begin({}));
  memset(pair->a.buffer, 'x', 5000);
  for (size_t i = 0; i < 20; ++i) {
    pair->b.buffer[4999] = 0;
    assert_int_equal(post_send(pair->a, i, IBV_WR_RDMA_WRITE, 0, 5000, &pair->b), 0);
    assert_true(wait_for_byte(&pair->b.buffer[4999], 'x'));
    assert_int_equal(pair->b.buffer[0], 'x');
  }
  for (size_t i = 0; i < 20; ++i) expect(pair->a.cq, i, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

void channel__solicited_only(void**) {
  PairOptions options;
  options.channel = true;
  assert_true(begin(options));
  for (uint64_t i = 0; i < 2; ++i) assert_int_equal(post_receive(pair->b, i, 0, 100), 0);
  assert_int_equal(ibv_req_notify_cq(pair->b.cq, 1), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 10), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_false(readable(pair->channel->fd, 50));
  assert_int_equal(post_send(pair->a, 2, IBV_WR_SEND, 0, 10, nullptr, 0, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED), 0);
  assert_true(becomes_readable(pair->channel->fd));
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  assert_int_equal(ibv_get_cq_event(pair->channel, &cq, &context), 0);
  assert_ptr_equal(cq, pair->b.cq);
  ibv_ack_cq_events(cq, 1);
  expect(pair->b.cq, 0, IBV_WC_SUCCESS, IBV_WC_RECV);
  expect(pair->b.cq, 1, IBV_WC_SUCCESS, IBV_WC_RECV);
}

void cq__overrun_is_an_event_and_resize_avoids_it(void**) {
  PairOptions options;
  options.cq_size = 3;
  assert_true(begin(options));
  assert_int_equal(ibv_resize_cq(pair->a.cq, 7), 0);
  assert_int_equal(pair->a.cq->cqe, 7);
  for (uint64_t i = 0; i < 7; ++i) assert_int_equal(post_send(pair->a, i, IBV_WR_RDMA_WRITE, 0, 8, &pair->b, 8 * i), 0);
  assert_false(readable(pair->context->async_fd, 100));
  assert_int_equal(ibv_resize_cq(pair->a.cq, 3), EINVAL);
  assert_int_equal(post_send(pair->a, 7, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  assert_true(becomes_readable(pair->context->async_fd));
  ibv_async_event event = {};
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
  assert_ptr_equal(event.element.cq, pair->a.cq);
  ibv_ack_async_event(&event);
}

void srq__limit_event(void**) {
  PairOptions options;
  options.srq = true;
  assert_true(begin(options));
  for (uint64_t i = 0; i < 3; ++i) assert_int_equal(post_receive(pair->b, i, 0, 100), 0);
  ibv_srq_attr attr = {0, 0, 3};
  assert_int_equal(ibv_modify_srq(pair->srq, &attr, IBV_SRQ_LIMIT), 0);
  attr = {kDepth * 2 + 1, 0, 0};
  assert_int_equal(ibv_modify_srq(pair->srq, &attr, IBV_SRQ_MAX_WR), 0);
  assert_int_equal(ibv_query_srq(pair->srq, &attr), 0);
  assert_int_equal(attr.max_wr, kDepth * 2 + 1);
  assert_int_equal(attr.srq_limit, 3);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 10), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_true(becomes_readable(pair->context->async_fd));
  ibv_async_event event = {};
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  assert_ptr_equal(event.element.srq, pair->srq);
  ibv_ack_async_event(&event);
  expect(pair->b.cq, 0, IBV_WC_SUCCESS, IBV_WC_RECV);
}

void windows__type_2_is_bound_used_and_invalidated(void**) {
  PairOptions options;
  options.windows = true;
  assert_true(begin(options));
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_2);
  assert_non_null(window);
  ibv_send_wr bind = {};
  ibv_send_wr* bad = nullptr;
  bind.wr_id = 1;
  bind.opcode = IBV_WR_BIND_MW;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind.bind_mw.bind_info = {pair->b.mr, reinterpret_cast<uintptr_t>(pair->b.buffer), 64, IBV_ACCESS_REMOTE_WRITE};
  assert_int_equal(ibv_post_send(pair->b.qp, &bind, &bad), 0);
  expect(pair->b.cq, 1, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
  assert_int_equal(ibv_dereg_mr(pair->b.mr), EBUSY);

  const uint32_t region_rkey = pair->b.mr->rkey;
  pair->b.mr->rkey = bind.bind_mw.rkey;
  pair->a.buffer[0] = 'w';
  assert_int_equal(post_send(pair->a, 2, IBV_WR_RDMA_WRITE, 0, 1, &pair->b, 63), 0);
  expect(pair->a.cq, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_int_equal(pair->b.buffer[63], 'w');

  assert_int_equal(post_receive(pair->b, 3, 0, 10), 0);
  ibv_send_wr invalidate = {};
  invalidate.wr_id = 4;
  invalidate.opcode = IBV_WR_SEND_WITH_INV;
  invalidate.send_flags = IBV_SEND_SIGNALED;
  invalidate.invalidate_rkey = bind.bind_mw.rkey;
  assert_int_equal(ibv_post_send(pair->a.qp, &invalidate, &bad), 0);
  expect(pair->a.cq, 4, IBV_WC_SUCCESS, IBV_WC_SEND);
  ibv_wc completion = {};
  assert_true(wait_for(pair->b.cq, completion));
  assert_int_equal(completion.wc_flags, IBV_WC_WITH_INV);
  assert_int_equal(completion.invalidated_rkey, bind.bind_mw.rkey);
  assert_int_equal(post_send(pair->a, 5, IBV_WR_RDMA_WRITE, 0, 1, &pair->b, 0), 0);
  expect(pair->a.cq, 5, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  pair->b.mr->rkey = region_rkey;
  assert_int_equal(ibv_dealloc_mw(window), 0);
}

void windows__type_1_is_bound_by_the_verb(void**) {
  PairOptions options;
  options.windows = true;
  assert_true(begin(options));
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
  assert_non_null(window);
  ibv_mw_bind bind = {};
  bind.wr_id = 9;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {pair->b.mr, reinterpret_cast<uintptr_t>(pair->b.buffer), 64, IBV_ACCESS_REMOTE_READ};
  const uint32_t before = window->rkey;
  assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), 0);
  expect(pair->b.cq, 9, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
  assert_int_not_equal(window->rkey, before);
  const uint32_t region_rkey = pair->b.mr->rkey;
  pair->b.mr->rkey = window->rkey;
  pair->b.buffer[5] = 'r';
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_READ, 0, 6, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
  assert_int_equal(pair->a.buffer[5], 'r');
  pair->b.mr->rkey = region_rkey;
  assert_int_equal(ibv_dealloc_mw(window), 0);
}

alignas(4096) char elsewhere[kBufferSize];

// For post_send(), of an address outside of the buffer.
size_t offset_of(const End& end, const char* address) {
  return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(end.buffer);
}

void rereg__other_memory__keys_stay(void**) {
  assert_true(begin({}));
  ibv_mr* mr = pair->b.mr;
  const uint32_t lkey = mr->lkey, rkey = mr->rkey;
  memset(pair->a.buffer, 'x', 100);
  memset(elsewhere, 0, sizeof elsewhere);
  assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, elsewhere, sizeof elsewhere, 0), 0);
  assert_int_equal(mr->lkey, lkey);
  assert_int_equal(mr->rkey, rkey);
  const size_t offset = offset_of(pair->b, elsewhere);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 100, &pair->b, offset), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_memory_equal(elsewhere, pair->a.buffer, 100);
  assert_int_equal(post_receive(pair->b, 2, offset + 200, 100), 0);
  assert_int_equal(post_send(pair->a, 3, IBV_WR_SEND, 0, 100), 0);
  expect(pair->b.cq, 2, IBV_WC_SUCCESS, IBV_WC_RECV);
  expect(pair->a.cq, 3, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_memory_equal(elsewhere + 200, pair->a.buffer, 100);
  assert_int_equal(post_send(pair->a, 4, IBV_WR_RDMA_WRITE, 0, 100, &pair->b), 0);
  expect(pair->a.cq, 4, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  assert_int_equal(pair->b.buffer[0], 0);
}

void rereg__no_rights__peer_is_refused(void**) {
  assert_true(begin({}));
  assert_int_equal(ibv_rereg_mr(pair->b.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0), 0);
  pair->a.buffer[0] = 'x';
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 1, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  assert_int_equal(pair->b.buffer[0], 0);
}

// libibverbs replaces the device's number by its own, so errno has the reason.
void expect_no_rereg(int flags, void* address, int access, int reason) {
  errno = 0;
  assert_int_equal(ibv_rereg_mr(pair->b.mr, flags, nullptr, address, 4096, access), IBV_REREG_MR_ERR_CMD);
  assert_int_equal(errno, reason);
  const char next = static_cast<char>(pair->b.buffer[0] + 1);
  pair->a.buffer[0] = next;
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 1, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_int_equal(pair->b.buffer[0], next);
}

void rereg__refused__region_stays_as_it_was(void**) {
  PairOptions options;
  options.windows = true;
  assert_true(begin(options));
  expect_no_rereg(IBV_REREG_MR_CHANGE_TRANSLATION, reinterpret_cast<void*>(4096), 0, EFAULT);
  expect_no_rereg(IBV_REREG_MR_CHANGE_ACCESS, nullptr, IBV_ACCESS_REMOTE_WRITE, EINVAL);
  ibv_mw* window = ibv_alloc_mw(pair->pd, IBV_MW_TYPE_1);
  assert_non_null(window);
  ibv_mw_bind bind = {};
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {pair->b.mr, reinterpret_cast<uintptr_t>(pair->b.buffer), 64, IBV_ACCESS_REMOTE_READ};
  assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), 0);
  expect(pair->b.cq, 0, IBV_WC_SUCCESS, IBV_WC_BIND_MW);
  expect_no_rereg(IBV_REREG_MR_CHANGE_TRANSLATION, elsewhere, 0, EBUSY);
  assert_int_equal(ibv_dealloc_mw(window), 0);
  assert_int_equal(ibv_rereg_mr(pair->b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, elsewhere, 4096, 0), 0);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(rc__send_write_read_atomics, finish),
      cmocka_unit_test_teardown(lists__at_odd_addresses, finish),
      cmocka_unit_test_teardown(atomics__beside_those_of_the_cpu_lose_nothing, finish),
      cmocka_unit_test_teardown(write__arrives_where_nobody_polls, finish),
      cmocka_unit_test_teardown(channel__solicited_only, finish),
      cmocka_unit_test_teardown(cq__overrun_is_an_event_and_resize_avoids_it, finish),
      cmocka_unit_test_teardown(srq__limit_event, finish),
      cmocka_unit_test_teardown(windows__type_2_is_bound_used_and_invalidated, finish),
      cmocka_unit_test_teardown(windows__type_1_is_bound_by_the_verb, finish),
      cmocka_unit_test_teardown(rereg__other_memory__keys_stay, finish),
      cmocka_unit_test_teardown(rereg__no_rights__peer_is_refused, finish),
      cmocka_unit_test_teardown(rereg__refused__region_stays_as_it_was, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
