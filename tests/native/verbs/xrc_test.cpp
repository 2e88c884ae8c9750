// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// XRC: domains, shared receive queues with numbers, and queue pairs with several handles. Runs under dapple-run.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <thread>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/leaves_objects.hpp"  // close__ends_what_is_left() does
#include "tests/native/verbs/rig.hpp"
#include "tests/native/verbs/xrc_domain.hpp"
#include "tests/task_state.h"

using namespace dapple::tests;

namespace {

constexpr uint32_t kPlaces = 20;

// A domain with two shared receive queues, which complete into queues of their own, and a connection to it. Sends come
// from end a's memory and complete in its queue.
struct Xrc {
  ibv_xrcd* domain = nullptr;
  ibv_cq* cq[2] = {};
  ibv_srq* srq[2] = {};
  ibv_qp* sender = nullptr;
  ibv_qp* receiver = nullptr;
};
Xrc xrc;

ibv_srq* make_srq(ibv_xrcd* domain, ibv_pd* pd, ibv_cq* cq, uint32_t limit = 0) {
  ibv_srq_init_attr_ex attr = {};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  attr.srq_type = IBV_SRQT_XRC;
  attr.attr = {kPlaces, 2, limit};
  attr.pd = pd;
  attr.xrcd = domain;
  attr.cq = cq;
  errno = 0;
  return ibv_create_srq_ex(pd->context, &attr);
}

ibv_qp* make_sender(ibv_pd* pd, ibv_cq* cq, bool extended) {
  ibv_qp_init_attr_ex attr = {};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.qp_type = IBV_QPT_XRC_SEND;
  attr.pd = pd;
  attr.send_cq = cq;
  attr.cap = {kDepth, 0, 2, 0, 64};
  if (extended) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ;
  }
  errno = 0;
  return ibv_create_qp_ex(pd->context, &attr);
}

bool connect_ends() {
  return connect(xrc.receiver, xrc.sender->qp_num) && connect(xrc.sender, xrc.receiver->qp_num);
}

bool begin_xrc(bool extended = false) {
  if (!begin({})) return false;
  xrc = {};
  xrc.domain = open_domain(pair->context, -1, O_CREAT);
  if (xrc.domain == nullptr) return false;
  for (int i = 0; i < 2; ++i) {
    xrc.cq[i] = ibv_create_cq(pair->context, kPlaces, nullptr, nullptr, 0);
    if (xrc.cq[i] == nullptr) return false;
    xrc.srq[i] = make_srq(xrc.domain, pair->pd, xrc.cq[i]);
    if (xrc.srq[i] == nullptr) return false;
  }
  xrc.receiver = make_receiver(xrc.domain);
  xrc.sender = make_sender(pair->pd, pair->a.cq, extended);
  return xrc.receiver != nullptr && xrc.sender != nullptr && connect_ends();
}

// Each object goes after those that need it.
void end_xrc() {
  assert_int_equal(ibv_destroy_qp(xrc.sender), 0);
  if (xrc.receiver != nullptr) assert_int_equal(ibv_destroy_qp(xrc.receiver), 0);
  for (int i = 0; i < 2; ++i) {
    if (xrc.srq[i] != nullptr) assert_int_equal(ibv_destroy_srq(xrc.srq[i]), 0);
    assert_int_equal(ibv_destroy_cq(xrc.cq[i]), 0);
  }
  assert_int_equal(ibv_close_xrcd(xrc.domain), 0);
}

uint32_t number_of(ibv_srq* srq) {
  uint32_t number = 0;
  assert_int_equal(ibv_get_srq_num(srq, &number), 0);
  return number;
}

void receive_at(ibv_srq* srq, uint64_t id, ibv_mr* mr, size_t offset, uint32_t length) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(mr->addr) + offset, length, mr->lkey};
  ibv_recv_wr request = {id, nullptr, &segment, 1};
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_srq_recv(srq, &request, &bad), 0);
}

ibv_send_wr request_of(uint64_t id, ibv_wr_opcode opcode, uint32_t srq, ibv_sge* segment) {
  ibv_send_wr request = {};
  request.wr_id = id;
  request.sg_list = segment;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = 0x12345678;
  request.qp_type.xrc.remote_srqn = srq;
  return request;
}

int post(ibv_send_wr& request) {
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(xrc.sender, &request, &bad);
}

int send_to(uint32_t srq, uint64_t id, uint32_t length, ibv_wr_opcode opcode = IBV_WR_SEND) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), length, pair->a.mr->lkey};
  ibv_send_wr request = request_of(id, opcode, srq, &segment);
  return post(request);
}

void expect_received(ibv_cq* cq, uint64_t id, uint32_t length) {
  ibv_wc completion = {};
  assert_true(wait_for(cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_int_equal(completion.wr_id, id);
  assert_int_equal(completion.opcode, IBV_WC_RECV);
  assert_int_equal(completion.byte_len, length);
  assert_int_equal(completion.qp_num, xrc.receiver->qp_num);
  assert_int_equal(completion.src_qp, xrc.sender->qp_num);
}

void fill() {
  for (size_t i = 0; i < kBufferSize; ++i) pair->a.buffer[i] = static_cast<char>(i * 7 + i / 256);
}

void send__its_number_selects_queue_and_completions(void**) {
  assert_true(begin_xrc());
  fill();
  assert_int_not_equal(number_of(xrc.srq[0]), number_of(xrc.srq[1]));
  receive_at(xrc.srq[0], 1, pair->b.mr, 0, 100);
  receive_at(xrc.srq[1], 2, pair->b.mr, 4096, 30000);
  receive_at(xrc.srq[1], 3, pair->b.mr, 40000, 8);
  assert_int_equal(send_to(number_of(xrc.srq[1]), 10, 30000), 0);
  assert_int_equal(send_to(number_of(xrc.srq[0]), 11, 99), 0);
  assert_int_equal(send_to(number_of(xrc.srq[1]), 12, 0, IBV_WR_SEND_WITH_IMM), 0);
  for (uint64_t id = 10; id < 13; ++id) expect(pair->a.cq, id, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_received(xrc.cq[1], 2, 30000);
  expect_received(xrc.cq[0], 1, 99);
  ibv_wc last = {};
  assert_true(wait_for(xrc.cq[1], last));
  assert_int_equal(last.wc_flags, IBV_WC_WITH_IMM);
  assert_int_equal(last.imm_data, 0x12345678);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 99);
  assert_memory_equal(pair->b.buffer + 4096, pair->a.buffer, 30000);
  // A message waits until its own queue has a receive.
  receive_at(xrc.srq[0], 4, pair->b.mr, 0, 100);
  assert_int_equal(send_to(number_of(xrc.srq[1]), 13, 50), 0);
  usleep(20000);
  ibv_wc none = {};
  assert_int_equal(ibv_poll_cq(pair->a.cq, 1, &none), 0);
  assert_int_equal(ibv_poll_cq(xrc.cq[0], 1, &none), 0);
  receive_at(xrc.srq[1], 5, pair->b.mr, 0, 100);
  expect(pair->a.cq, 13, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_received(xrc.cq[1], 5, 50);
  end_xrc();
}

void operations__reach_memory_of_the_queues_domain(void**) {
  assert_true(begin_xrc());
  fill();
  const uint32_t srq = number_of(xrc.srq[0]);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 20000, pair->a.mr->lkey};
  ibv_send_wr request = request_of(1, IBV_WR_RDMA_WRITE, srq, &segment);
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = pair->b.mr->rkey;
  assert_int_equal(post(request), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 20000);
  receive_at(xrc.srq[0], 7, pair->b.mr, 0, 0);
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.wr_id = 2;
  assert_int_equal(post(request), 0);
  expect(pair->a.cq, 2, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  expect(xrc.cq[0], 7, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM);
  memset(pair->b.buffer, 'r', 20000);
  request.opcode = IBV_WR_RDMA_READ;
  request.wr_id = 3;
  assert_int_equal(post(request), 0);
  expect(pair->a.cq, 3, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
  assert_memory_equal(pair->a.buffer, pair->b.buffer, 20000);
  memset(pair->b.buffer, 0, 8);
  segment.length = 8;
  request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  request.wr_id = 4;
  request.wr.atomic.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.atomic.rkey = pair->b.mr->rkey;
  request.wr.atomic.compare_add = 3;
  assert_int_equal(post(request), 0);
  expect(pair->a.cq, 4, IBV_WC_SUCCESS, IBV_WC_FETCH_ADD);
  uint64_t sum = 0;
  memcpy(&sum, pair->b.buffer, 8);
  assert_int_equal(sum, 3);
  end_xrc();
}

// The key of one queue's domain is no key for another queue.
void operations__with_a_queue_of_another_domain__fail(void**) {
  assert_true(begin_xrc());
  ibv_pd* other = ibv_alloc_pd(pair->context);
  assert_non_null(other);
  assert_int_equal(ibv_destroy_srq(xrc.srq[1]), 0);
  xrc.srq[1] = make_srq(xrc.domain, other, xrc.cq[1]);
  assert_non_null(xrc.srq[1]);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 10, pair->a.mr->lkey};
  ibv_send_wr request = request_of(1, IBV_WR_RDMA_WRITE, number_of(xrc.srq[1]), &segment);
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = pair->b.mr->rkey;
  assert_int_equal(post(request), 0);
  expect(pair->a.cq, 1, IBV_WC_REM_ACCESS_ERR, IBV_WC_RDMA_WRITE);
  end_xrc();
  assert_int_equal(ibv_dealloc_pd(other), 0);
}

void extended__the_setter_names_the_queue(void**) {
  assert_true(begin_xrc(true));
  fill();
  ibv_qp_ex* sender = ibv_qp_to_qp_ex(xrc.sender);
  assert_non_null(sender);
  receive_at(xrc.srq[1], 5, pair->b.mr, 0, 3000);
  ibv_wr_start(sender);
  sender->wr_id = 9;
  sender->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(sender);
  ibv_wr_set_xrc_srqn(sender, number_of(xrc.srq[1]));
  ibv_wr_set_sge(sender, pair->a.mr->lkey, reinterpret_cast<uintptr_t>(pair->a.buffer), 3000);
  assert_int_equal(ibv_wr_complete(sender), 0);
  expect(pair->a.cq, 9, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_received(xrc.cq[1], 5, 3000);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 3000);
  end_xrc();
}

ibv_event_type next_event(ibv_context* context, const void* element) {
  ibv_async_event event = {};
  assert_true(becomes_readable(context->async_fd));
  assert_int_equal(ibv_get_async_event(context, &event), 0);
  assert_ptr_equal(event.element.qp, element);
  ibv_ack_async_event(&event);
  return event.event_type;
}

void send__to_a_number_without_a_queue__is_an_invalid_request(void**) {
  assert_true(begin_xrc());
  const uint32_t gone = number_of(xrc.srq[1]);
  receive_at(xrc.srq[1], 1, pair->b.mr, 0, 100);
  assert_int_equal(ibv_destroy_srq(xrc.srq[1]), 0);
  xrc.srq[1] = nullptr;
  assert_int_equal(send_to(gone, 1, 10), 0);
  expect(pair->a.cq, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND);
  assert_int_equal(next_event(pair->context, xrc.receiver), IBV_EVENT_QP_REQ_ERR);
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  assert_int_equal(ibv_query_qp(xrc.receiver, &attr, IBV_QP_STATE, &init), 0);
  assert_int_equal(attr.qp_state, IBV_QPS_ERR);
  assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
  end_xrc();
}

// Its last packet needs a receive. Without the queue it would be sent again for ever.
void write_with_immediate__whose_queue_is_destroyed_on_the_way__is_an_invalid_request(void**) {
  assert_true(begin_xrc());
  fill();
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 20000, pair->a.mr->lkey};
  ibv_send_wr request = request_of(1, IBV_WR_RDMA_WRITE_WITH_IMM, number_of(xrc.srq[0]), &segment);
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = pair->b.mr->rkey;
  const volatile char& first = pair->b.buffer[1];
  pair->b.buffer[1] = 0;
  assert_int_equal(post(request), 0);
  while (first != pair->a.buffer[1]) sched_yield();
  assert_int_equal(ibv_destroy_srq(xrc.srq[0]), 0);
  xrc.srq[0] = nullptr;
  expect(pair->a.cq, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_RDMA_WRITE);
  assert_int_equal(next_event(pair->context, xrc.receiver), IBV_EVENT_QP_REQ_ERR);
  end_xrc();
}

void events__of_the_queue_and_its_completions(void**) {
  assert_true(begin_xrc());
  ibv_comp_channel* channel = ibv_create_comp_channel(pair->context);
  ibv_cq* cq = ibv_create_cq(pair->context, kPlaces, nullptr, channel, 0);
  assert_non_null(cq);
  ibv_srq* srq = make_srq(xrc.domain, pair->pd, cq);
  assert_non_null(srq);
  for (uint64_t id = 0; id < 3; ++id) receive_at(srq, id, pair->b.mr, 100 * id, 100);
  ibv_srq_attr limit = {0, 0, 2};
  assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  assert_int_equal(send_to(number_of(srq), 1, 10), 0);
  // Without a poll.
  assert_true(becomes_readable(channel->fd));
  ibv_cq* told = nullptr;
  void* context = nullptr;
  assert_int_equal(ibv_get_cq_event(channel, &told, &context), 0);
  assert_ptr_equal(told, cq);
  ibv_ack_cq_events(cq, 1);
  expect_received(cq, 0, 10);
  assert_int_equal(send_to(number_of(srq), 2, 10), 0);
  expect_received(cq, 1, 10);
  assert_int_equal(next_event(pair->context, srq), IBV_EVENT_SRQ_LIMIT_REACHED);
  for (uint64_t id = 1; id < 3; ++id) expect(pair->a.cq, id, IBV_WC_SUCCESS, IBV_WC_SEND);
  assert_int_equal(ibv_destroy_cq(cq), EBUSY);
  assert_int_equal(ibv_destroy_srq(srq), 0);
  assert_int_equal(ibv_destroy_cq(cq), 0);
  assert_int_equal(ibv_destroy_comp_channel(channel), 0);
  end_xrc();
}

void domain__is_that_of_the_inode_in_all_contexts(void**) {
  assert_true(begin({}));
  ibv_context* other = open_loopback();
  assert_non_null(other);
  const int fd = memfd_create("xrc", 0);
  assert_true(fd >= 0);
  assert_null(open_domain(other, fd, 0));
  assert_int_equal(errno, EAGAIN);
  assert_null(open_domain(other, 9999, O_CREAT));
  assert_int_equal(errno, EBADF);
  ibv_xrcd* first = open_domain(pair->context, fd, O_CREAT | O_EXCL);
  assert_non_null(first);
  assert_null(open_domain(other, fd, O_CREAT | O_EXCL));
  assert_int_equal(errno, EINVAL);
  // Another descriptor of the same inode.
  const int again = dup(fd);
  close(fd);
  ibv_xrcd* second = open_domain(other, again, 0);
  assert_non_null(second);
  close(again);
  // A queue in one context serves a queue pair in another one.
  ibv_srq* srq = make_srq(second, pair->pd, pair->b.cq);
  assert_null(srq);  // of two contexts
  assert_int_equal(errno, EINVAL);
  ibv_pd* pd = ibv_alloc_pd(other);
  ibv_cq* cq = ibv_create_cq(other, kPlaces, nullptr, nullptr, 0);
  ibv_mr* mr = ibv_reg_mr(pd, pair->b.buffer, kBufferSize, int{IBV_ACCESS_LOCAL_WRITE});
  assert_non_null(mr);
  srq = make_srq(second, pd, cq);
  assert_non_null(srq);
  xrc = {};
  xrc.receiver = make_receiver(first);
  xrc.sender = make_sender(pair->pd, pair->a.cq, false);
  assert_true(xrc.receiver != nullptr && xrc.sender != nullptr && connect_ends());
  fill();
  receive_at(srq, 3, mr, 0, 2000);
  assert_int_equal(send_to(number_of(srq), 1, 2000), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_received(cq, 3, 2000);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, 2000);
  assert_int_equal(ibv_close_xrcd(second), EBUSY);
  assert_int_equal(ibv_close_xrcd(first), EBUSY);
  assert_int_equal(ibv_destroy_srq(srq), 0);
  assert_int_equal(ibv_close_xrcd(second), 0);
  assert_int_equal(ibv_destroy_qp(xrc.sender), 0);
  assert_int_equal(ibv_destroy_qp(xrc.receiver), 0);
  assert_int_equal(ibv_close_xrcd(first), 0);
  assert_int_equal(ibv_dereg_mr(mr), 0);
  assert_int_equal(ibv_destroy_cq(cq), 0);
  assert_int_equal(ibv_dealloc_pd(pd), 0);
  assert_int_equal(ibv_close_device(other), 0);
}

// A lock of the file by fcntl() is lost as soon as the process closes any usual descriptor of it.
void domain__of_a_locked_file__leaves_the_lock(void**) {
  assert_true(begin({}));
  const int fd = memfd_create("xrc", 0);
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
  ibv_xrcd* domain = open_domain(pair->context, fd, O_CREAT);
  assert_non_null(domain);
  assert_int_equal(ibv_close_xrcd(domain), 0);
  const pid_t child = fork();
  if (child == 0) _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_WRLCK ? 0 : 1);
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  close(fd);
}

ibv_qp* open_receiver(ibv_xrcd* domain, uint32_t number, ibv_qp_type type = IBV_QPT_XRC_RECV) {
  ibv_qp_open_attr attr = {};
  attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
  attr.qp_num = number;
  attr.xrcd = domain;
  attr.qp_type = type;
  attr.qp_context = &xrc;
  errno = 0;
  return ibv_open_qp(domain->context, &attr);
}

void open_qp__the_queue_pair_lives_as_long_as_a_handle(void**) {
  assert_true(begin_xrc());
  const uint32_t number = xrc.receiver->qp_num;
  ibv_xrcd* alien = open_domain(pair->context, -1, O_CREAT);
  assert_null(open_receiver(alien, number));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_close_xrcd(alien), 0);
  assert_null(open_receiver(xrc.domain, number, IBV_QPT_RC));
  assert_int_equal(errno, EINVAL);
  // Of another process.
  assert_null(open_receiver(xrc.domain, number ^ 0x800000));
  assert_int_equal(errno, EINVAL);
  ibv_qp* handle = open_receiver(xrc.domain, number);
  ibv_qp* third = open_receiver(xrc.domain, number);
  assert_true(handle != nullptr && third != nullptr);
  assert_int_equal(handle->qp_num, number);
  assert_int_equal(handle->state, IBV_QPS_RTS);
  assert_ptr_equal(handle->qp_context, &xrc);
  assert_int_equal(ibv_destroy_qp(third), 0);
  assert_int_equal(ibv_destroy_qp(xrc.receiver), 0);
  xrc.receiver = handle;
  receive_at(xrc.srq[0], 1, pair->b.mr, 0, 100);
  assert_int_equal(send_to(number_of(xrc.srq[0]), 1, 50), 0);
  expect(pair->a.cq, 1, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_received(xrc.cq[0], 1, 50);
  // A handle means the whole queue pair.
  ibv_qp_attr attr = {};
  ibv_qp_init_attr init = {};
  assert_int_equal(ibv_query_qp(handle, &attr, IBV_QP_STATE, &init), 0);
  assert_int_equal(attr.dest_qp_num, xrc.sender->qp_num);
  assert_int_equal(send_to(number_of(xrc.srq[0]) ^ 0x800000, 2, 50), 0);
  expect(pair->a.cq, 2, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND);
  assert_int_equal(next_event(pair->context, handle), IBV_EVENT_QP_REQ_ERR);
  assert_int_equal(ibv_destroy_qp(handle), 0);
  assert_null(open_receiver(xrc.domain, number));
  assert_int_equal(errno, EINVAL);
  xrc.receiver = nullptr;
  end_xrc();
}

// The thread that destroys the first handle waits for an acknowledgement, and the other handle goes meanwhile. The
// queue pair lives until the first handle is gone, too.
void destroy__of_two_handles_at_once(void**) {
  assert_true(begin_xrc());
  const uint32_t number = xrc.receiver->qp_num;
  ibv_qp* handle = open_receiver(xrc.domain, number);
  assert_non_null(handle);
  assert_int_equal(send_to(number_of(xrc.srq[0]) ^ 0x800000, 1, 50), 0);
  expect(pair->a.cq, 1, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND);
  ibv_async_event first = {};
  for (int i = 0; i < 2; ++i) {
    ibv_async_event event = {};
    assert_true(becomes_readable(pair->context->async_fd));
    assert_int_equal(ibv_get_async_event(pair->context, &event), 0);
    if (event.element.qp == xrc.receiver) first = event;
    if (event.element.qp == handle) ibv_ack_async_event(&event);
  }
  assert_ptr_equal(first.element.qp, xrc.receiver);
  std::atomic<pid_t> thread_id{0};
  std::thread first_handle([&] {
    thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    if (ibv_destroy_qp(xrc.receiver) != 0) abort();
  });
  while (thread_id == 0 || task_state(thread_id) != 'S') sched_yield();
  ibv_qp* second = open_receiver(xrc.domain, number);
  assert_non_null(second);
  assert_int_equal(ibv_destroy_qp(handle), 0);
  assert_int_equal(ibv_destroy_qp(second), 0);
  ibv_qp* third = open_receiver(xrc.domain, number);
  assert_non_null(third);
  ibv_ack_async_event(&first);
  first_handle.join();
  xrc.receiver = third;
  end_xrc();
}

void ends__refuse_the_other_half(void**) {
  assert_true(begin_xrc());
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 8, pair->a.mr->lkey};
  ibv_send_wr send = request_of(1, IBV_WR_SEND, number_of(xrc.srq[0]), &segment);
  ibv_send_wr* bad_send = nullptr;
  assert_int_equal(ibv_post_send(xrc.receiver, &send, &bad_send), EINVAL);
  assert_ptr_equal(bad_send, &send);
  ibv_recv_wr receive = {1, nullptr, &segment, 1};
  for (ibv_qp* qp : {xrc.receiver, xrc.sender}) {
    ibv_recv_wr* bad = nullptr;
    assert_int_equal(ibv_post_recv(qp, &receive, &bad), EINVAL);
    assert_ptr_equal(bad, &receive);
  }
  ibv_qp* handle = open_receiver(xrc.domain, xrc.receiver->qp_num);
  assert_int_equal(ibv_post_send(handle, &send, &bad_send), EINVAL);
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_recv(handle, &receive, &bad), EINVAL);
  assert_int_equal(ibv_destroy_qp(handle), 0);
  // As with the kernel, each end ignores the attributes of the other half.
  ibv_qp_attr attr = {};
  attr.min_rnr_timer = 5;
  assert_int_equal(ibv_modify_qp(xrc.sender, &attr, IBV_QP_MIN_RNR_TIMER), 0);
  attr.rnr_retry = 3;
  assert_int_equal(ibv_modify_qp(xrc.receiver, &attr, IBV_QP_RNR_RETRY), 0);
  // A plain queue pair takes no receives of a domain, and a plain queue has no number.
  ibv_qp_init_attr init = {};
  init.send_cq = init.recv_cq = pair->a.cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_RC;
  init.srq = xrc.srq[0];
  assert_null(ibv_create_qp(pair->pd, &init));
  assert_int_equal(errno, EINVAL);
  ibv_srq_init_attr plain = {};
  plain.attr = {1, 1, 0};
  ibv_srq* srq = ibv_create_srq(pair->pd, &plain);
  uint32_t number = 0;
  assert_int_equal(ibv_get_srq_num(srq, &number), EOPNOTSUPP);
  assert_int_equal(ibv_destroy_srq(srq), 0);
  ibv_xrcd_init_attr incomplete = {};
  assert_null(ibv_open_xrcd(pair->context, &incomplete));
  assert_int_equal(errno, EINVAL);
  end_xrc();
}

// The program leaves its objects, as it may when it closes a device. Their memory stays, as with any provider.
void close__ends_what_is_left(void**) {
  assert_true(begin_xrc());
  ibv_context* other = open_loopback();
  const int fd = memfd_create("xrc", 0);
  ibv_xrcd* left = open_domain(other, fd, O_CREAT);
  ibv_xrcd* kept = open_domain(pair->context, fd, 0);
  assert_true(left != nullptr && kept != nullptr);
  ibv_qp* receiver = make_receiver(left);
  ibv_qp* handle = open_receiver(kept, receiver->qp_num);
  assert_non_null(handle);
  assert_int_equal(ibv_close_device(other), 0);
  // The queue pair has ended, and the handle means none any more.
  assert_null(open_receiver(kept, handle->qp_num));
  assert_int_equal(errno, EINVAL);
  assert_int_equal(ibv_destroy_qp(handle), 0);
  assert_int_equal(ibv_close_xrcd(kept), 0);
  // The domain is gone with its last opening.
  assert_null(open_domain(pair->context, fd, 0));
  assert_int_equal(errno, EAGAIN);
  close(fd);
  end_xrc();
}

}  // namespace

int main(int argc, char**) {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(send__its_number_selects_queue_and_completions, finish),
      cmocka_unit_test_teardown(operations__reach_memory_of_the_queues_domain, finish),
      cmocka_unit_test_teardown(extended__the_setter_names_the_queue, finish),
      cmocka_unit_test_teardown(events__of_the_queue_and_its_completions, finish),
      cmocka_unit_test_teardown(domain__is_that_of_the_inode_in_all_contexts, finish),
      cmocka_unit_test_teardown(domain__of_a_locked_file__leaves_the_lock, finish),
      // What --check reports as a mistake.
      cmocka_unit_test_teardown(operations__with_a_queue_of_another_domain__fail, finish),
      cmocka_unit_test_teardown(send__to_a_number_without_a_queue__is_an_invalid_request, finish),
      cmocka_unit_test_teardown(write_with_immediate__whose_queue_is_destroyed_on_the_way__is_an_invalid_request,
                                finish),
      cmocka_unit_test_teardown(open_qp__the_queue_pair_lives_as_long_as_a_handle, finish),
      cmocka_unit_test_teardown(destroy__of_two_handles_at_once, finish),
      cmocka_unit_test_teardown(ends__refuse_the_other_half, finish),
      cmocka_unit_test_teardown(close__ends_what_is_left, finish),
  };
  constexpr size_t kWithoutMistakes = 5;
  const size_t count = argc > 1 ? kWithoutMistakes : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("xrc", tests, count, nullptr, nullptr);
}
