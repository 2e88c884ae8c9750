// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs of the software device, between two queue pairs of this process over lo. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::tests;

// The child of a fork makes a thread, which ThreadSanitizer forbids unless it is told otherwise.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "die_after_fork=0";
}

namespace {

Pair* pair = nullptr;

bool begin(const PairOptions& options) {
  pair = make_pair(options);
  if (pair == nullptr) fprintf(stderr, "no pair: %s\n", strerror(errno));
  return pair != nullptr;
}

int finish(void**) {
  delete pair;
  pair = nullptr;
  return 0;
}

void expect(ibv_cq* cq, uint64_t id, ibv_wc_status status, ibv_wc_opcode opcode) {
  ibv_wc completion = {};
  assert_true(wait_for(cq, completion));
  assert_int_equal(completion.wr_id, id);
  assert_int_equal(completion.status, status);
  if (status == IBV_WC_SUCCESS) assert_int_equal(completion.opcode, opcode);
}

bool readable(int fd, int milliseconds) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) == 1;
}

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

void write__beyond_the_region_fails_both_ends_with_an_event(void**) {
  assert_true(begin({}));
  assert_int_equal(post_receive(pair->b, 20, 0, 100), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 10, &pair->b, kBufferSize - 9), 0);
  assert_int_equal(post_send(pair->a, 2, IBV_WR_RDMA_WRITE, 0, 10, &pair->b), 0);
  expect(pair->a.cq, 1, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  expect(pair->a.cq, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE);
  expect(pair->b.cq, 20, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  // Posted after the flush.
  assert_int_equal(post_receive(pair->b, 21, 0, 100), 0);
  expect(pair->b.cq, 21, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV);
  assert_true(readable(pair->context->async_fd, 1000));
  ibv_async_event event = {};
  assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
  assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
  assert_ptr_equal(event.element.qp, pair->b.qp);
  ibv_ack_async_event(&event);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  assert_int_equal(ibv_query_qp(pair->b.qp, &attr, IBV_QP_STATE, &init), 0);
  assert_int_equal(attr.qp_state, IBV_QPS_ERR);
}

void destroyed_objects__leave_no_events(void**) {
  PairOptions options;
  options.channel = true;
  assert_true(begin(options));
  assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
  assert_int_equal(post_receive(pair->b, 1, 0, 100), 0);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 10, &pair->b, kBufferSize), 0);
  assert_true(readable(pair->channel->fd, 2000));
  assert_true(readable(pair->context->async_fd, 2000));
  assert_int_equal(ibv_destroy_cq(pair->b.cq), EBUSY);
  assert_int_equal(ibv_destroy_qp(pair->b.qp), 0);
  pair->b.qp = nullptr;
  assert_false(readable(pair->context->async_fd, 0));
  assert_true(readable(pair->channel->fd, 0));
  assert_int_equal(ibv_destroy_cq(pair->b.cq), 0);
  pair->b.cq = nullptr;
  assert_false(readable(pair->channel->fd, 0));
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
  assert_true(readable(pair->channel->fd, 2000));
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
  options.cq_size = 2;
  assert_true(begin(options));
  assert_int_equal(ibv_resize_cq(pair->a.cq, 4), 0);
  assert_int_equal(pair->a.cq->cqe, 4);
  for (uint64_t i = 0; i < 4; ++i) assert_int_equal(post_send(pair->a, i, IBV_WR_RDMA_WRITE, 0, 8, &pair->b, 8 * i), 0);
  assert_false(readable(pair->context->async_fd, 100));
  assert_int_equal(ibv_resize_cq(pair->a.cq, 3), EINVAL);
  assert_int_equal(post_send(pair->a, 4, IBV_WR_RDMA_WRITE, 0, 8, &pair->b), 0);
  assert_true(readable(pair->context->async_fd, 2000));
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
  attr = {kDepth * 2, 0, 0};
  assert_int_equal(ibv_modify_srq(pair->srq, &attr, IBV_SRQ_MAX_WR), 0);
  assert_int_equal(ibv_query_srq(pair->srq, &attr), 0);
  assert_int_equal(attr.max_wr, kDepth * 2);
  assert_int_equal(attr.srq_limit, 3);
  assert_int_equal(post_send(pair->a, 1, IBV_WR_SEND, 0, 10), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_true(readable(pair->context->async_fd, 2000));
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
  bind.bind_info = {pair->b.mr, reinterpret_cast<uintptr_t>(pair->b.buffer), kBufferSize + 1, IBV_ACCESS_REMOTE_READ};
  assert_int_equal(ibv_bind_mw(pair->b.qp, window, &bind), EINVAL);
  bind.bind_info.length = 64;
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

void extended__requests_and_completions(void**) {
  PairOptions options;
  options.operations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE;
  assert_true(begin(options));
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 16;
  attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
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

  // One that the queue refuses: none is posted.
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
  // Nor more than there is room for; exactly so many are.
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

// Reads asynchronous events until one of this type comes, for five seconds at most.
bool hears(ibv_context* context, ibv_event_type type) {
  for (;;) {
    pollfd waiting = {context->async_fd, POLLIN, 0};
    ibv_async_event event = {};
    if (poll(&waiting, 1, 5000) <= 0 || ibv_get_async_event(context, &event) != 0) return false;
    ibv_ack_async_event(&event);
    if (event.event_type == type) return event.element.port_num == 1;
  }
}

void events__netdev_changes__are_told(void**) {
  ibv_context* context = open_loopback();
  ibv_context* second = open_loopback();
  assert_non_null(context);
  assert_non_null(second);
  if (run("ip addr add 10.9.9.9/32 dev lo")) {
    assert_true(hears(context, IBV_EVENT_GID_CHANGE));
    assert_true(hears(second, IBV_EVENT_GID_CHANGE));
    // Also if the program asks for something at that moment.
    for (int i = 0; i < 20; i++) {
      assert_true(run(i % 2 == 0 ? "ip addr del 10.9.9.9/32 dev lo" : "ip addr add 10.9.9.9/32 dev lo"));
      ibv_port_attr port;
      assert_int_equal(ibv_query_port(context, 1, &port), 0);
      assert_true(hears(context, IBV_EVENT_GID_CHANGE));
    }
    assert_true(run("ip addr del 10.9.9.9/32 dev lo && ip link set lo down"));
    assert_true(hears(context, IBV_EVENT_PORT_ERR));
    assert_true(run("ip link set lo up"));
    assert_true(hears(context, IBV_EVENT_PORT_ACTIVE));
    assert_true(hears(second, IBV_EVENT_PORT_ACTIVE));
  } else {
    print_message("no address can be added: left out\n");
  }
  assert_int_equal(ibv_close_device(second), 0);
  assert_int_equal(ibv_close_device(context), 0);
}

void extended__completions_are_read_field_by_field(void**) {
  assert_true(begin({}));
  // The plain interface's queue has the other view only if it was made so.
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
  ibv_ah_attr address = {};
  address.is_global = 1;
  address.port_num = 1;
  assert_int_equal(ibv_query_gid(pair->context, 1, 0, &address.grh.dgid), 0);
  ibv_ah* ah = ibv_create_ah(pair->pd, &address);
  assert_non_null(ah);
  ibv_sge into = {reinterpret_cast<uintptr_t>(pair->b.buffer), 100, pair->b.mr->lkey};
  ibv_recv_wr receive = {7, nullptr, &into, 1};
  ibv_recv_wr* bad_receive = nullptr;
  assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
  ibv_sge from = {reinterpret_cast<uintptr_t>(pair->a.buffer), 10, pair->a.mr->lkey};
  ibv_send_wr send = {};
  ibv_send_wr* bad = nullptr;
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.wr.ud.ah = ah;
  send.wr.ud.remote_qpn = qp->qp_num;
  send.wr.ud.remote_qkey = 0x1111;
  memset(pair->a.buffer, 'u', 10);
  assert_int_equal(ibv_post_send(qp, &send, &bad), 0);
  ibv_poll_cq_attr poll_attr = {};
  int error = ENOENT;
  for (int i = 0; i < 100000 && error == ENOENT; ++i) error = ibv_start_poll(cq, &poll_attr);
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

void refusals__have_the_documented_errors(void**) {
  assert_true(begin({}));
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->a.cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RAW_PACKET;
  assert_null(ibv_create_qp(pair->pd, &init));
  assert_int_equal(errno, EOPNOTSUPP);
  init.qp_type = IBV_QPT_RC;
  init.cap.max_send_sge = 33;
  assert_null(ibv_create_qp(pair->pd, &init));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_dealloc_pd(pair->pd), EBUSY);
  assert_null(ibv_reg_mr(pair->pd, reinterpret_cast<void*>(4096), 4096, IBV_ACCESS_LOCAL_WRITE));
  assert_int_equal(errno, EFAULT);
  assert_null(ibv_reg_mr(pair->pd, pair->a.buffer, 10, IBV_ACCESS_REMOTE_WRITE));
  assert_int_equal(errno, EINVAL);
  assert_null(ibv_reg_dmabuf_mr(pair->pd, 0, 4096, 0, 0, 0));
  assert_int_equal(errno, EOPNOTSUPP);
  ibv_xrcd_init_attr xrcd = {};
  assert_null(ibv_open_xrcd(pair->context, &xrcd));
  ibv_ah_attr address = {};
  address.is_global = 1;
  address.port_num = 1;
  address.grh.sgid_index = 31;
  assert_null(ibv_create_ah(pair->pd, &address));
  assert_int_equal(errno, EINVAL);
  // A queue pair that is not there yet receives nothing, and one of another kind takes no group.
  ibv_qp* qp = ibv_create_qp(pair->pd, &(init.cap.max_send_sge = 1, init));
  assert_non_null(qp);
  ibv_recv_wr receive = {};
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_recv(qp, &receive, &bad), EINVAL);
  assert_ptr_equal(bad, &receive);
  ibv_gid group = {};
  group.raw[0] = 0xFF;
  assert_int_equal(ibv_attach_mcast(qp, &group, 0), EINVAL);
  assert_int_equal(ibv_destroy_qp(qp), 0);
}

void vanished_peer__ends_the_retries_whether_somebody_polls_or_not(void**) {
  PairOptions options;
  options.channel = true;
  assert_true(begin(options));
  assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
  assert_int_equal(ibv_destroy_qp(pair->a.qp), 0);
  pair->a.qp = nullptr;
  assert_int_equal(post_send(pair->b, 1, IBV_WR_RDMA_WRITE, 0, 5000, &pair->a), 0);
  assert_int_equal(post_send(pair->b, 2, IBV_WR_RDMA_WRITE, 0, 5000, &pair->a), 0);
  assert_true(readable(pair->channel->fd, 5000));
  expect(pair->b.cq, 1, IBV_WC_RETRY_EXC_ERR, IBV_WC_RDMA_WRITE);
  expect(pair->b.cq, 2, IBV_WC_WR_FLUSH_ERR, IBV_WC_RDMA_WRITE);
}

struct Traffic {
  pthread_t thread;
  uint32_t rkey;
  uint64_t succeeded;
  uint64_t failed;
};

// Writes until a Write fails, and polls meanwhile.
void* write_until_it_fails(void* argument) {
  auto* traffic = static_cast<Traffic*>(argument);
  ibv_wc completion = {};
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 20000, pair->a.mr->lkey};
  ibv_send_wr request = {};
  ibv_send_wr* bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = traffic->rkey;
  while (traffic->failed == 0) {
    if (ibv_post_send(pair->a.qp, &request, &bad) != 0) break;
    if (!wait_for(pair->a.cq, completion)) break;
    __atomic_fetch_add(completion.status == IBV_WC_SUCCESS ? &traffic->succeeded : &traffic->failed, 1,
                       __ATOMIC_RELEASE);
  }
  return nullptr;
}

void destruction__of_what_a_peer_writes_to(void**) {
  for (int round = 0; round < 10; ++round) {
    assert_true(begin({}));
    Traffic traffic = {};
    traffic.rkey = pair->b.mr->rkey;
    assert_int_equal(pthread_create(&traffic.thread, nullptr, write_until_it_fails, &traffic), 0);
    while (__atomic_load_n(&traffic.succeeded, __ATOMIC_ACQUIRE) < 20) usleep(100);
    if (round % 2 == 0) {
      assert_int_equal(ibv_dereg_mr(pair->b.mr), 0);
      pair->b.mr = nullptr;
      memset(pair->b.buffer, 1, kBufferSize);
    } else {
      assert_int_equal(ibv_destroy_qp(pair->b.qp), 0);
      pair->b.qp = nullptr;
    }
    pthread_join(traffic.thread, nullptr);
    assert_int_equal(traffic.failed, 1);
    if (round % 2 == 0) {
      for (size_t i = 0; i < kBufferSize; ++i) assert_int_equal(pair->b.buffer[i], 1);
    }
    finish(nullptr);
  }
}

// The child's verbs fail, and the parent goes on.
bool to_reset(ibv_qp* qp) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

// A peer has its message and disconnects. Its acknowledgement came before that, and is in a socket that nobody has read
// yet. Nothing polls the sender's queue in between.
void error__comes_after_what_has_come_before(void**) {
  assert_true(begin({}));
  for (uint64_t i = 0; i < 200; ++i) {
    End& leaves = i % 2 == 0 ? pair->a : pair->b;
    assert_int_equal(post_receive(pair->b, i, 0, 4096), 0);
    for (uint64_t k = 0; k < 3; ++k) {
      assert_int_equal(post_send(pair->a, k, IBV_WR_RDMA_WRITE, 0, 4096, &pair->b, 4096), 0);
    }
    assert_int_equal(post_send(pair->a, 3, IBV_WR_SEND, 0, 4096), 0);
    expect(pair->b.cq, i, IBV_WC_SUCCESS, IBV_WC_RECV);
    assert_true(to_error(leaves.qp));
    for (uint64_t k = 0; k < 4; ++k) expect(pair->a.cq, k, IBV_WC_SUCCESS, k == 3 ? IBV_WC_SEND : IBV_WC_RDMA_WRITE);
    assert_true(to_reset(pair->a.qp) && to_reset(pair->b.qp));
    assert_true(connect(pair->a.qp, pair->b.qp->qp_num) && connect(pair->b.qp, pair->a.qp->qp_num));
  }
}

void fork__child_is_refused_and_the_parent_goes_on(void**) {
  assert_true(begin({}));
  const pid_t child = fork();
  if (child == 0) {
    ibv_wc completion;
    bool good = ibv_poll_cq(pair->a.cq, 1, &completion) < 0;
    good = good && post_send(pair->a, 1, IBV_WR_RDMA_WRITE, 0, 8, &pair->b) == ENODEV;
    good = good && ibv_alloc_pd(pair->context) == nullptr && errno == ENODEV;
    good = good && ibv_destroy_qp(pair->a.qp) == ENODEV;
    // A device of its own.
    ibv_context* own = open_loopback();
    good = good && own != nullptr && ibv_alloc_pd(own) != nullptr;
    _exit(good ? 0 : 1);
  }
  assert_true(child > 0);
  for (uint64_t i = 0; i < 10; ++i) {
    assert_int_equal(post_send(pair->a, i, IBV_WR_RDMA_WRITE, 0, 5000, &pair->b), 0);
    expect(pair->a.cq, i, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(post_send(pair->a, 99, IBV_WR_RDMA_WRITE, 0, 5000, &pair->b), 0);
  expect(pair->a.cq, 99, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(rc__send_write_read_atomics, finish),
      cmocka_unit_test_teardown(write__arrives_where_nobody_polls, finish),
      cmocka_unit_test_teardown(write__beyond_the_region_fails_both_ends_with_an_event, finish),
      cmocka_unit_test_teardown(destroyed_objects__leave_no_events, finish),
      cmocka_unit_test_teardown(channel__solicited_only, finish),
      cmocka_unit_test_teardown(cq__overrun_is_an_event_and_resize_avoids_it, finish),
      cmocka_unit_test_teardown(srq__limit_event, finish),
      cmocka_unit_test_teardown(windows__type_2_is_bound_used_and_invalidated, finish),
      cmocka_unit_test_teardown(windows__type_1_is_bound_by_the_verb, finish),
      cmocka_unit_test_teardown(extended__requests_and_completions, finish),
      cmocka_unit_test(events__netdev_changes__are_told),
      cmocka_unit_test_teardown(extended__completions_are_read_field_by_field, finish),
      cmocka_unit_test_teardown(refusals__have_the_documented_errors, finish),
      cmocka_unit_test_teardown(vanished_peer__ends_the_retries_whether_somebody_polls_or_not, finish),
      cmocka_unit_test_teardown(destruction__of_what_a_peer_writes_to, finish),
      cmocka_unit_test_teardown(error__comes_after_what_has_come_before, finish),
      cmocka_unit_test_teardown(fork__child_is_refused_and_the_parent_goes_on, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
