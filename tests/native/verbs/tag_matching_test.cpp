// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Shared receive queues that match tags: lists of tags, eager messages and rendezvous. Runs under dapple-run.
#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr uint32_t kTags = 8;
constexpr uint32_t kOperations = 40;
constexpr uint32_t kHeader = sizeof(ibv_tmh);
constexpr uint32_t kBothHeaders = sizeof(ibv_tmh) + sizeof(ibv_rvh);
constexpr unsigned kMatch = IBV_WC_TM_MATCH;
constexpr unsigned kData = IBV_WC_TM_DATA_VALID;

// End a's memory and completion queue belong to the sender, which also receives. The receiver's messages go to end b's
// memory and complete in `cq`.
struct Tags {
  ibv_cq_ex* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* receiver = nullptr;
  ibv_qp* sender = nullptr;
};
Tags tags;

ibv_cq_ex* make_cq(ibv_comp_channel* channel = nullptr) {
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 200;
  attr.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_TM_INFO;
  attr.channel = channel;
  return ibv_create_cq_ex(pair->context, &attr);
}

ibv_srq_init_attr_ex attributes() {
  ibv_srq_init_attr_ex attr = {};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  attr.srq_type = IBV_SRQT_TM;
  attr.attr = {20, 2, 0};
  attr.pd = pair->pd;
  attr.cq = ibv_cq_ex_to_cq(tags.cq);
  attr.tm_cap = {kTags, kOperations};
  return attr;
}

ibv_qp* make_qp(ibv_srq* srq, uint32_t sends, ibv_qp_type type = IBV_QPT_RC) {
  ibv_qp_init_attr attr = {};
  attr.qp_type = type;
  attr.srq = srq;
  attr.send_cq = attr.recv_cq = pair->a.cq;
  attr.cap = {sends, srq == nullptr ? kDepth : 0, sends == 0 ? 0u : 2u, srq == nullptr ? 1u : 0, sends == 0 ? 0u : 64u};
  errno = 0;
  return ibv_create_qp(pair->pd, &attr);
}

bool begin_tags(uint32_t receivers_sends = 0, ibv_comp_channel* channel = nullptr) {
  tags.cq = make_cq(channel);
  if (tags.cq == nullptr) return false;
  ibv_srq_init_attr_ex attr = attributes();
  tags.srq = ibv_create_srq_ex(pair->context, &attr);
  if (tags.srq == nullptr) return false;
  tags.receiver = make_qp(tags.srq, receivers_sends);
  tags.sender = make_qp(nullptr, kDepth);
  if (tags.receiver == nullptr || tags.sender == nullptr) return false;
  for (size_t i = 0; i < kBufferSize; ++i) pair->a.buffer[i] = static_cast<char>(i * 7 + i / 256);
  memset(pair->b.buffer, '.', kBufferSize);
  return connect(tags.receiver, tags.sender->qp_num) && connect(tags.sender, tags.receiver->qp_num);
}

int set_up(void**) {
  tags = {};
  return begin({}) && begin_tags() ? 0 : -1;
}

int set_up_pair(void**) {
  tags = {};
  return begin({}) ? 0 : -1;
}

int tear_down(void** state) {
  bool good = true;
  if (tags.sender != nullptr) good = ibv_destroy_qp(tags.sender) == 0;
  if (tags.receiver != nullptr) good = ibv_destroy_qp(tags.receiver) == 0 && good;
  if (tags.srq != nullptr) good = ibv_destroy_srq(tags.srq) == 0 && good;
  if (tags.cq != nullptr) good = ibv_destroy_cq(ibv_cq_ex_to_cq(tags.cq)) == 0 && good;
  return finish(state) == 0 && good ? 0 : -1;
}

// --- Operations

struct Message {
  uint64_t id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_TM_RECV;
  unsigned flags = 0;
  uint32_t bytes = 0;
  uint64_t tag = 0;
  uint32_t priv = 0;
};

Message next() {
  Message got = {.id = UINT64_MAX};
  ibv_poll_cq_attr attr = {};
  int error = ENOENT;
  for (int i = 0; i < 60 * 100 * 10 && error == ENOENT; ++i) {
    error = ibv_start_poll(tags.cq, &attr);
    if (error == ENOENT) usleep(1000);
  }
  if (error != 0) return got;
  got = {.id = tags.cq->wr_id,
         .status = tags.cq->status,
         .opcode = ibv_wc_read_opcode(tags.cq),
         .flags = ibv_wc_read_wc_flags(tags.cq),
         .bytes = ibv_wc_read_byte_len(tags.cq)};
  ibv_wc_tm_info info = {};
  ibv_wc_read_tm_info(tags.cq, &info);
  got.tag = info.tag;
  got.priv = info.priv;
  ibv_end_poll(tags.cq);
  return got;
}

bool is_quiet() {
  ibv_poll_cq_attr attr = {};
  for (int i = 0; i < 20; ++i) {
    if (ibv_start_poll(tags.cq, &attr) == 0) {
      ibv_end_poll(tags.cq);
      return false;
    }
    usleep(1000);
  }
  return true;
}

void expect_message(uint64_t id, ibv_wc_opcode opcode, unsigned flags) {
  const Message got = next();
  assert_int_equal(got.id, id);
  assert_int_equal(got.status, IBV_WC_SUCCESS);
  assert_int_equal(got.opcode, opcode);
  assert_int_equal(got.flags, flags);
}

int operate(ibv_ops_wr& wr) {
  ibv_ops_wr* bad = nullptr;
  errno = 0;
  const int error = ibv_post_srq_ops(tags.srq, &wr, &bad);
  if (error != 0 && bad != &wr) return -1;
  return error;
}

ibv_ops_wr addition(uint64_t id, uint64_t tag, uint64_t mask, ibv_sge* segment) {
  ibv_ops_wr wr = {};
  wr.wr_id = id + 1000;
  wr.opcode = IBV_WR_TAG_ADD;
  wr.flags = IBV_OPS_SIGNALED;
  wr.tm.add.recv_wr_id = id;
  wr.tm.add.sg_list = segment;
  wr.tm.add.num_sge = segment == nullptr ? 0 : 1;
  wr.tm.add.tag = tag;
  wr.tm.add.mask = mask;
  return wr;
}

ibv_sge place(size_t offset, uint32_t length) {
  return {reinterpret_cast<uintptr_t>(pair->b.buffer) + offset, length, pair->b.mr->lkey};
}

// Returns the handle.
uint32_t add(uint64_t id, uint64_t tag, size_t offset, uint32_t length, unsigned flags = 0) {
  ibv_sge segment = place(offset, length);
  ibv_ops_wr wr = addition(id, tag, UINT64_MAX, &segment);
  assert_int_equal(operate(wr), 0);
  expect_message(id + 1000, IBV_WC_TM_ADD, flags);
  return wr.tm.handle;
}

int remove_tag(uint64_t id, uint32_t handle, int flags = IBV_OPS_SIGNALED) {
  ibv_ops_wr wr = {};
  wr.wr_id = id;
  wr.opcode = IBV_WR_TAG_DEL;
  wr.flags = flags;
  wr.tm.handle = handle;
  return operate(wr);
}

void sync_count(uint32_t count, unsigned flags) {
  ibv_ops_wr wr = {};
  wr.wr_id = 77;
  wr.opcode = IBV_WR_TAG_SYNC;
  wr.flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
  wr.tm.unexpected_cnt = count;
  assert_int_equal(operate(wr), 0);
  expect_message(77, IBV_WC_TM_SYNC, flags);
}

void receive_untagged(uint64_t id, size_t offset, uint32_t length) {
  ibv_sge segment = place(offset, length);
  ibv_recv_wr request = {id, nullptr, &segment, 1};
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_srq_recv(tags.srq, &request, &bad), 0);
}

// --- Messages

void write_header(uint8_t opcode, uint64_t tag, uint32_t priv = 0x1234) {
  ibv_tmh header = {};
  header.opcode = opcode;
  header.app_ctx = htobe32(priv);
  header.tag = htobe64(tag);
  memcpy(pair->a.buffer, &header, sizeof header);
}

void write_rendezvous(uint64_t tag, size_t offset, uint32_t length, uint32_t rkey) {
  write_header(IBV_TMH_RNDV, tag);
  ibv_rvh header = {};
  header.va = htobe64(reinterpret_cast<uintptr_t>(pair->a.buffer) + offset);
  header.rkey = htobe32(rkey);
  header.len = htobe32(length);
  memcpy(pair->a.buffer + kHeader, &header, sizeof header);
}

// Sends the first bytes of end a's memory.
void send_bytes(uint64_t id, uint32_t length) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), length, pair->a.mr->lkey};
  ibv_send_wr request = {};
  request.wr_id = id;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  assert_int_equal(ibv_post_send(tags.sender, &request, &bad), 0);
}

void send(uint64_t id, uint32_t length) {
  send_bytes(id, length);
  expect(pair->a.cq, id, IBV_WC_SUCCESS, IBV_WC_SEND);
}

// A receive of the sender, for the end of a rendezvous.
void receive_end(uint64_t id, size_t offset) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer) + offset, 64, pair->a.mr->lkey};
  ibv_recv_wr request = {id, nullptr, &segment, 1};
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_recv(tags.sender, &request, &bad), 0);
}

// --- Tests

void query__tells_what_lists_can(void**) {
  ibv_device_attr_ex attr = {};
  assert_int_equal(ibv_query_device_ex(pair->context, nullptr, &attr), 0);
  assert_int_equal(attr.tm_caps.flags, IBV_TM_CAP_RC);
  assert_int_equal(attr.tm_caps.max_rndv_hdr_size, 64);
  assert_int_equal(attr.tm_caps.max_num_tags, 127);
  assert_true(attr.tm_caps.max_ops >= kOperations);
  assert_true(attr.tm_caps.max_sge >= 1);
}

void create__with_wrong_attributes__is_refused(void**) {
  tags.cq = make_cq();
  assert_non_null(tags.cq);
  const auto error_of = [](const ibv_srq_init_attr_ex& wanted) {
    ibv_srq_init_attr_ex attr = wanted;
    errno = 0;
    return ibv_create_srq_ex(pair->context, &attr) == nullptr ? errno : 0;
  };
  ibv_srq_init_attr_ex attr = attributes();
  attr.comp_mask &= ~uint32_t{IBV_SRQ_INIT_ATTR_TM};
  assert_int_equal(error_of(attr), EINVAL);
  attr = attributes();
  attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
  assert_int_equal(error_of(attr), EINVAL);
  attr = attributes();
  attr.cq = nullptr;
  assert_int_equal(error_of(attr), EINVAL);
  attr.cq = pair->a.cq;  // not an extended one
  assert_int_equal(error_of(attr), EINVAL);
  for (const uint32_t count : {0u, 128u}) {
    attr = attributes();
    attr.tm_cap.max_num_tags = count;
    assert_int_equal(error_of(attr), EINVAL);
  }
  attr = attributes();
  attr.tm_cap.max_ops = 0;
  assert_int_equal(error_of(attr), EINVAL);
  attr = attributes();
  attr.attr.max_wr = 0;
  assert_int_equal(error_of(attr), EINVAL);
  attr = attributes();
  tags.srq = ibv_create_srq_ex(pair->context, &attr);
  assert_non_null(tags.srq);
  assert_null(make_qp(tags.srq, 0, IBV_QPT_UD));
  assert_int_equal(errno, EINVAL);
  // The queue needs its completion queue.
  assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(tags.cq)), EBUSY);
}

void operations__on_another_queue__are_refused(void**) {
  ibv_srq_init_attr attr = {nullptr, {4, 1, 0}};
  tags.srq = ibv_create_srq(pair->pd, &attr);
  assert_non_null(tags.srq);
  ibv_ops_wr wr = addition(1, 1, 1, nullptr);
  assert_int_equal(operate(wr), EINVAL);
  assert_int_equal(errno, EINVAL);
}

void eager__meets_its_tag(void**) {
  add(1, 0x100, 0, 4096);
  add(2, 0x200, 8192, 4096);
  write_header(IBV_TMH_EAGER, 0x200, 0xABCD);
  send(10, kHeader + 500);
  const Message got = next();
  assert_int_equal(got.id, 2);
  assert_int_equal(got.status, IBV_WC_SUCCESS);
  assert_int_equal(got.opcode, IBV_WC_TM_RECV);
  assert_int_equal(got.flags, kMatch | kData);
  assert_int_equal(got.bytes, 500);
  assert_int_equal(got.tag, 0x200);
  assert_int_equal(got.priv, 0xABCD);
  assert_memory_equal(pair->b.buffer + 8192, pair->a.buffer + kHeader, 500);
  assert_int_equal(pair->b.buffer[8192 + 500], '.');
  assert_int_equal(pair->b.buffer[0], '.');
  // A header alone, and a message that fills its entry.
  write_header(IBV_TMH_EAGER, 0x100);
  send(11, kHeader);
  expect_message(1, IBV_WC_TM_RECV, kMatch | kData);
  add(3, 0x300, 0, 1000);
  write_header(IBV_TMH_EAGER, 0x300);
  send(12, kHeader + 1000);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
  assert_memory_equal(pair->b.buffer, pair->a.buffer + kHeader, 1000);
  assert_int_equal(pair->b.buffer[1000], '.');
  assert_true(is_quiet());
}

void eager__takes_the_oldest_entry_that_matches(void**) {
  ibv_sge segments[] = {place(0, 100), place(100, 100), place(200, 100)};
  ibv_ops_wr any = addition(1, 0, 0xFF00, &segments[0]);
  ibv_ops_wr exact = addition(2, 0x0007, UINT64_MAX, &segments[1]);
  ibv_ops_wr later = addition(3, 0, 0, &segments[2]);
  any.next = &exact;
  exact.next = &later;
  assert_int_equal(operate(any), 0);
  for (uint64_t id = 1001; id <= 1003; ++id) expect_message(id, IBV_WC_TM_ADD, 0);
  write_header(IBV_TMH_EAGER, 0x0007);
  send(10, kHeader + 8);
  expect_message(1, IBV_WC_TM_RECV, kMatch | kData);
  send(11, kHeader + 8);
  expect_message(2, IBV_WC_TM_RECV, kMatch | kData);
  write_header(IBV_TMH_EAGER, UINT64_MAX);
  send(12, kHeader + 8);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
}

void eager__of_several_packets__completes_twice(void**) {
  for (const uint32_t length : {3000u, 40000u}) {
    add(5, 0x55, 1000, 50000);
    write_header(IBV_TMH_EAGER, 0x55, 9);
    send(10, kHeader + length);
    const Message match = next();
    assert_int_equal(match.id, 5);
    assert_int_equal(match.flags, kMatch);
    assert_int_equal(match.tag, 0x55);
    assert_int_equal(match.priv, 9);
    const Message data = next();
    assert_int_equal(data.id, 5);
    assert_int_equal(data.status, IBV_WC_SUCCESS);
    assert_int_equal(data.opcode, IBV_WC_TM_RECV);
    assert_int_equal(data.flags, kData);
    assert_int_equal(data.bytes, length);
    assert_memory_equal(pair->b.buffer + 1000, pair->a.buffer + kHeader, length);
    assert_int_equal(pair->b.buffer[1000 + length], '.');
  }
}

// It goes to a receive of the queue, with its header. Tags that come then are not in effect until the program has told
// that it has read the message.
void unexpected__holds_new_tags_back(void**) {
  receive_untagged(1, 0, 1000);
  receive_untagged(2, 1000, 1000);
  add(3, 0x33, 2000, 1000);
  write_header(IBV_TMH_EAGER, 0x44);
  send(10, kHeader + 100);
  Message got = next();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.opcode, IBV_WC_TM_RECV);
  assert_int_equal(got.flags, 0);
  assert_int_equal(got.bytes, kHeader + 100);
  assert_int_equal(got.tag, 0);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, kHeader + 100);
  add(4, 0x44, 3000, 1000, IBV_WC_TM_SYNC_REQ);
  send(11, kHeader + 100);
  got = next();
  assert_int_equal(got.id, 2);
  assert_int_equal(got.flags, 0);
  // An older tag stays in effect.
  write_header(IBV_TMH_EAGER, 0x33);
  send(12, kHeader + 8);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
  sync_count(1, IBV_WC_TM_SYNC_REQ);
  sync_count(2, 0);
  write_header(IBV_TMH_EAGER, 0x44);
  send(13, kHeader + 100);
  expect_message(4, IBV_WC_TM_RECV, kMatch | kData);
  assert_memory_equal(pair->b.buffer + 3000, pair->a.buffer + kHeader, 100);
}

// Without an entry and without a receive it waits, and is counted once.
void unexpected__waits_for_a_receive(void**) {
  write_header(IBV_TMH_EAGER, 0x44);
  send_bytes(10, kHeader + 100);
  assert_true(is_quiet());
  receive_untagged(1, 0, 1000);
  expect(pair->a.cq, 10, IBV_WC_SUCCESS, IBV_WC_SEND);
  expect_message(1, IBV_WC_TM_RECV, 0);
  sync_count(1, 0);
}

void message__without_a_tag__is_a_receive(void**) {
  ibv_sge segment = place(30000, 100);
  ibv_ops_wr any = addition(9, 0, 0, &segment);
  assert_int_equal(operate(any), 0);
  expect_message(1009, IBV_WC_TM_ADD, 0);
  for (uint64_t id = 1; id <= 6; ++id) receive_untagged(id, id * 1000, 1000);
  write_header(IBV_TMH_NO_TAG, 0);
  send(10, 300);
  const Message got = next();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.opcode, IBV_WC_TM_NO_TAG);
  assert_int_equal(got.bytes, 300);
  assert_memory_equal(pair->b.buffer + 1000, pair->a.buffer, 300);
  // The end of a rendezvous, an unknown operation, and messages without a whole header.
  write_header(IBV_TMH_FIN, 0);
  send(11, kBothHeaders);
  expect_message(2, IBV_WC_TM_NO_TAG, 0);
  write_header(200, 0);
  send(12, 100);
  expect_message(3, IBV_WC_TM_NO_TAG, 0);
  write_header(IBV_TMH_EAGER, 0);
  send(13, kHeader - 1);
  expect_message(4, IBV_WC_TM_NO_TAG, 0);
  write_rendezvous(0, 0, 8, pair->a.mr->rkey);
  send(14, kBothHeaders - 1);
  expect_message(5, IBV_WC_TM_NO_TAG, 0);
  send(15, 0);
  expect_message(6, IBV_WC_TM_NO_TAG, 0);
  sync_count(0, 0);  // none of them counts
}

void write_with_immediate__takes_a_receive(void**) {
  receive_untagged(1, 0, 0);
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer), 64, pair->a.mr->lkey};
  ibv_send_wr request = {};
  request.wr_id = 10;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->b.buffer);
  request.wr.rdma.rkey = pair->b.mr->rkey;
  ibv_send_wr* bad = nullptr;
  assert_int_equal(ibv_post_send(tags.sender, &request, &bad), 0);
  expect(pair->a.cq, 10, IBV_WC_SUCCESS, IBV_WC_RDMA_WRITE);
  expect_message(1, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
}

void eager__too_long_for_its_entry__fails(void**) {
  add(1, 0x11, 0, 99);
  write_header(IBV_TMH_EAGER, 0x11);
  send_bytes(10, kHeader + 100);
  expect(pair->a.cq, 10, IBV_WC_REM_INV_REQ_ERR, IBV_WC_SEND);
  const Message got = next();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.status, IBV_WC_LOC_LEN_ERR);
  for (size_t i = 0; i < 200; ++i) assert_int_equal(pair->b.buffer[i], '.');
}

// The device reads the bytes, and tells the sender.
void rendezvous__reads_from_the_sender(void**) {
  for (const uint32_t length : {20000u, 1u, 0u, 48000u}) {
    memset(pair->b.buffer, '.', kBufferSize);
    add(1, 0x99, 100, 50000);
    receive_end(20, 60000);
    write_rendezvous(0x99, 64, length, pair->a.mr->rkey);
    send(10, kBothHeaders + 10);
    const Message match = next();
    assert_int_equal(match.id, 1);
    assert_int_equal(match.status, IBV_WC_SUCCESS);
    assert_int_equal(match.opcode, IBV_WC_TM_RECV);
    assert_int_equal(match.flags, kMatch);
    assert_int_equal(match.tag, 0x99);
    assert_int_equal(match.priv, 0x1234);
    expect(pair->a.cq, 20, IBV_WC_SUCCESS, IBV_WC_RECV);
    const Message data = next();
    assert_int_equal(data.id, 1);
    assert_int_equal(data.status, IBV_WC_SUCCESS);
    assert_int_equal(data.opcode, IBV_WC_TM_RECV);
    assert_int_equal(data.flags, kData);
    assert_int_equal(data.bytes, length);
    assert_memory_equal(pair->b.buffer + 100, pair->a.buffer + 64, length);
    assert_int_equal(pair->b.buffer[99], '.');
    assert_int_equal(pair->b.buffer[100 + length], '.');
    // The headers come back, with another operation.
    assert_int_equal(pair->a.buffer[60000], IBV_TMH_FIN);
    assert_memory_equal(pair->a.buffer + 60001, pair->a.buffer + 1, kBothHeaders - 1);
  }
}

// More than the device has under way at a time: the others come again.
void rendezvous__many__all_complete(void**) {
  constexpr uint32_t kCount = 40;
  ibv_sge segment = place(0, 1000);
  uint32_t added = 0, sent = 0, ends = 0, data = 0, told = 0;
  for (uint32_t i = 0; i < kCount; ++i) receive_end(500 + i, 50000 + i * 64);
  while (data < kCount || ends < kCount || told < kCount) {
    for (; added < kCount && added < data + kTags; ++added) {
      segment = place(added * 1000, 1000);
      ibv_ops_wr wr = addition(added, 5, UINT64_MAX, &segment);
      assert_int_equal(operate(wr), 0);
    }
    for (; sent < added; ++sent) {
      write_rendezvous(5, 2000, 1000, pair->a.mr->rkey);
      send_bytes(100 + sent, kBothHeaders);
    }
    const Message got = next();
    assert_int_equal(got.status, IBV_WC_SUCCESS);
    if (got.opcode == IBV_WC_TM_RECV && got.flags == kData) assert_int_equal(got.id, data++);
    ibv_wc completion = {};
    while (ibv_poll_cq(pair->a.cq, 1, &completion) == 1) {
      assert_int_equal(completion.status, IBV_WC_SUCCESS);
      if (completion.opcode == IBV_WC_SEND) told++;
      if (completion.opcode == IBV_WC_RECV) assert_int_equal(completion.wr_id, 500 + ends++);
    }
  }
  for (uint32_t i = 0; i < kCount; ++i) assert_memory_equal(pair->b.buffer + i * 1000, pair->a.buffer + 2000, 1000);
}

void expect_incomplete(uint64_t id, uint32_t length) {
  const Message got = next();
  assert_int_equal(got.id, id);
  assert_int_equal(got.status, IBV_WC_TM_RNDV_INCOMPLETE);
  assert_int_equal(got.bytes, length);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, length);
}

// The program gets the headers in the memory of the tag, and goes on by itself.
void rendezvous__too_long_for_its_entry__is_left_to_the_program(void**) {
  add(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 1001, pair->a.mr->rkey);
  send(10, kBothHeaders + 5);
  expect_incomplete(1, kBothHeaders + 5);
  // A request with more bytes than the device looks at.
  add(2, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 10, pair->a.mr->rkey);
  send(11, 65);
  expect_incomplete(2, 65);
  // The queue pair is as before.
  add(3, 0x99, 0, 1000);
  write_header(IBV_TMH_EAGER, 0x99);
  send(12, kHeader + 7);
  expect_message(3, IBV_WC_TM_RECV, kMatch | kData);
}

void rendezvous__without_a_match__is_unexpected(void**) {
  receive_untagged(1, 0, 1000);
  write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey);
  send(10, kBothHeaders + 4);
  const Message got = next();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.flags, 0);
  assert_int_equal(got.bytes, kBothHeaders + 4);
  assert_memory_equal(pair->b.buffer, pair->a.buffer, kBothHeaders + 4);
  sync_count(1, 0);
}

// A queue pair with requests of the program has no room for the device's.
void rendezvous__to_a_queue_pair_that_sends__is_left_to_the_program(void**) {
  assert_true(begin_tags(4));
  add(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 500, pair->a.mr->rkey);
  send(10, kBothHeaders);
  expect_incomplete(1, kBothHeaders);
  // The program's own Read of the bytes.
  ibv_sge segment = place(0, 500);
  ibv_send_wr request = {};
  request.wr_id = 30;
  request.sg_list = &segment;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(pair->a.buffer) + 64;
  request.wr.rdma.rkey = pair->a.mr->rkey;
  ibv_send_wr* bad = nullptr;
  assert_int_equal(ibv_post_send(tags.receiver, &request, &bad), 0);
  expect(pair->a.cq, 30, IBV_WC_SUCCESS, IBV_WC_RDMA_READ);
  assert_memory_equal(pair->b.buffer, pair->a.buffer + 64, 500);
}

void rendezvous__with_a_wrong_key__fails(void**) {
  add(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey ^ 0x5500);
  send_bytes(10, kBothHeaders);
  expect_message(1, IBV_WC_TM_RECV, kMatch);
  const Message got = next();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.status, IBV_WC_REM_ACCESS_ERR);
  for (size_t i = 0; i < 1000; ++i) assert_int_equal(pair->b.buffer[i], '.');
}

// The peer's number leads nowhere, so the Read has no answer.
void rendezvous__of_a_peer_that_ends__fails(void**) {
  assert_int_equal(ibv_destroy_qp(tags.receiver), 0);
  tags.receiver = make_qp(tags.srq, 0);
  assert_non_null(tags.receiver);
  ibv_qp* gone = make_qp(nullptr, 1);
  assert_non_null(gone);
  assert_true(connect(tags.receiver, gone->qp_num, 8));
  assert_int_equal(ibv_destroy_qp(gone), 0);
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  assert_int_equal(ibv_modify_qp(tags.sender, &attr, IBV_QP_STATE), 0);
  assert_true(connect(tags.sender, tags.receiver->qp_num));
  add(1, 0x99, 0, 1000);
  write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey);
  send_bytes(10, kBothHeaders);
  expect_message(1, IBV_WC_TM_RECV, kMatch);
  const Message got = next();
  assert_int_equal(got.id, 1);
  assert_int_equal(got.status, IBV_WC_RETRY_EXC_ERR);
}

void remove__before_and_after_a_match(void**) {
  const uint32_t first = add(1, 0x11, 0, 100);
  const uint32_t second = add(2, 0x22, 100, 100);
  assert_int_equal(remove_tag(50, first), 0);
  expect_message(50, IBV_WC_TM_DEL, 0);
  write_header(IBV_TMH_EAGER, 0x22);
  send(10, kHeader + 4);
  expect_message(2, IBV_WC_TM_RECV, kMatch | kData);
  for (const uint32_t handle : {first, second}) {
    assert_int_equal(remove_tag(51, handle), 0);
    const Message got = next();
    assert_int_equal(got.id, 51);
    assert_int_equal(got.status, IBV_WC_TM_ERR);
    assert_int_equal(got.opcode, IBV_WC_TM_DEL);
  }
  // The place of an entry gets another one, which the old handle does not mean.
  for (uint64_t id = 3; id < 3 + kTags; ++id) add(id, id, 0, 100);
  assert_int_equal(remove_tag(52, first), 0);
  assert_int_equal(next().status, IBV_WC_TM_ERR);
  // The removed tag matches nothing.
  receive_untagged(90, 200, 1000);
  write_header(IBV_TMH_EAGER, 0x11);
  send(11, kHeader + 4);
  expect_message(90, IBV_WC_TM_RECV, 0);
}

void operations__beyond_the_limits__are_refused(void**) {
  ibv_ops_wr wr = addition(1, 1, 1, nullptr);
  wr.opcode = static_cast<ibv_ops_wr_opcode>(9);
  assert_int_equal(operate(wr), EINVAL);
  assert_int_equal(remove_tag(1, 0xFF), EINVAL);
  wr = addition(1, 1, 1, nullptr);
  wr.tm.add.num_sge = -1;
  assert_int_equal(operate(wr), EINVAL);
  ibv_sge many[64] = {};
  wr.tm.add.sg_list = many;
  wr.tm.add.num_sge = 64;
  assert_int_equal(operate(wr), EINVAL);
  for (uint64_t id = 0; id < kTags; ++id) add(id, id, 0, 100);
  wr = addition(99, 99, UINT64_MAX, nullptr);
  assert_int_equal(operate(wr), ENOMEM);
  assert_int_equal(errno, ENOMEM);
  // Operations without a completion stay outstanding until that of a later one is polled.
  wr = {};
  wr.opcode = IBV_WR_TAG_SYNC;
  uint32_t posted = 0;
  for (; posted < 1000 && operate(wr) == 0; ++posted) continue;
  assert_true(posted >= kOperations && posted < 1000);
  assert_int_equal(operate(wr), ENOMEM);
}

void operations__whose_completions_are_polled__go_on(void**) {
  ibv_ops_wr wr = {};
  wr.opcode = IBV_WR_TAG_SYNC;
  for (uint32_t i = 0; i < 40 * kOperations; ++i) {
    wr.wr_id = i;
    wr.flags = i % 10 == 9 ? IBV_OPS_SIGNALED : 0;
    assert_int_equal(operate(wr), 0);
    if (wr.flags != 0) expect_message(i, IBV_WC_TM_SYNC, 0);
  }
}

// A message in progress gives its entry back, and the queue goes on.
void reset__in_a_rendezvous__frees_the_entry(void**) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  for (int round = 0; round < 3 * static_cast<int>(kTags); ++round) {
    add(1, 0x99, 0, 1000);
    write_rendezvous(0x99, 64, 1000, pair->a.mr->rkey);
    send_bytes(10, kBothHeaders);  // the end finds no receive
    expect_message(1, IBV_WC_TM_RECV, kMatch);
    assert_int_equal(ibv_modify_qp(tags.receiver, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_modify_qp(tags.sender, &attr, IBV_QP_STATE), 0);
    assert_true(connect(tags.receiver, tags.sender->qp_num) && connect(tags.sender, tags.receiver->qp_num));
  }
  add(2, 0x99, 0, 1000);
  write_header(IBV_TMH_EAGER, 0x99);
  send(11, kHeader + 4);
  expect_message(2, IBV_WC_TM_RECV, kMatch | kData);
}

void destroy__with_tags_left(void**) {
  for (uint64_t id = 0; id < kTags; ++id) add(id, id, 0, 100);
  receive_untagged(90, 200, 1000);
  assert_true(to_error(tags.receiver));
  // Entries belong to the list, so the queue pair flushes none.
  assert_true(is_quiet());
}

void events__come_for_operations_and_messages(void**) {
  ibv_comp_channel* channel = ibv_create_comp_channel(pair->context);
  assert_non_null(channel);
  assert_true(begin_tags(0, channel));
  ibv_cq* const cq = ibv_cq_ex_to_cq(tags.cq);
  const auto gets_event = [&] {
    ibv_cq* got = nullptr;
    void* context = nullptr;
    if (!becomes_readable(channel->fd) || ibv_get_cq_event(channel, &got, &context) != 0) return false;
    ibv_ack_cq_events(got, 1);
    return got == cq;
  };
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  ibv_sge segment = place(0, 100);
  ibv_ops_wr wr = addition(1, 7, UINT64_MAX, &segment);
  assert_int_equal(operate(wr), 0);
  assert_true(gets_event());
  expect_message(1001, IBV_WC_TM_ADD, 0);
  assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
  write_header(IBV_TMH_EAGER, 7);
  send(10, kHeader + 4);
  assert_true(gets_event());
  // Plain polls show the same.
  ibv_wc completion = {};
  assert_true(wait_for(cq, completion));
  assert_int_equal(completion.wr_id, 1);
  assert_int_equal(completion.opcode, IBV_WC_TM_RECV);
  assert_int_equal(completion.wc_flags, kMatch | kData);
  assert_int_equal(ibv_destroy_qp(tags.sender), 0);
  assert_int_equal(ibv_destroy_qp(tags.receiver), 0);
  assert_int_equal(ibv_destroy_srq(tags.srq), 0);
  assert_int_equal(ibv_destroy_cq(cq), 0);
  tags = {};
  assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

// The completion queue that the program has named for the queue pair's receives gets none, and stays.
void queue_pair__keeps_its_own_completion_queue(void**) {
  assert_true(tags.receiver->recv_cq == pair->a.cq);
  ibv_qp_init_attr init = {};
  ibv_qp_attr attr = {};
  assert_int_equal(ibv_query_qp(tags.receiver, &attr, IBV_QP_CAP, &init), 0);
  assert_true(init.recv_cq == pair->a.cq && init.srq == tags.srq);
  assert_int_equal(init.cap.max_send_wr, 0);
  // The send queue is the device's.
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  assert_int_equal(ibv_post_send(tags.receiver, &request, &bad), ENOMEM);
  assert_int_equal(ibv_destroy_qp(tags.sender), 0);
  tags.sender = nullptr;
  assert_int_equal(ibv_destroy_cq(pair->a.cq), EBUSY);
}

}  // namespace

int main(int argc, char**) {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(query__tells_what_lists_can, set_up_pair, tear_down),
      cmocka_unit_test_setup_teardown(create__with_wrong_attributes__is_refused, set_up_pair, tear_down),
      cmocka_unit_test_setup_teardown(operations__on_another_queue__are_refused, set_up_pair, tear_down),
      cmocka_unit_test_setup_teardown(eager__meets_its_tag, set_up, tear_down),
      cmocka_unit_test_setup_teardown(eager__takes_the_oldest_entry_that_matches, set_up, tear_down),
      cmocka_unit_test_setup_teardown(eager__of_several_packets__completes_twice, set_up, tear_down),
      cmocka_unit_test_setup_teardown(unexpected__holds_new_tags_back, set_up, tear_down),
      cmocka_unit_test_setup_teardown(unexpected__waits_for_a_receive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(message__without_a_tag__is_a_receive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(write_with_immediate__takes_a_receive, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__reads_from_the_sender, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__many__all_complete, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__too_long_for_its_entry__is_left_to_the_program, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__without_a_match__is_unexpected, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__to_a_queue_pair_that_sends__is_left_to_the_program, set_up_pair,
                                      tear_down),
      cmocka_unit_test_setup_teardown(remove__before_and_after_a_match, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operations__whose_completions_are_polled__go_on, set_up, tear_down),
      cmocka_unit_test_setup_teardown(reset__in_a_rendezvous__frees_the_entry, set_up, tear_down),
      cmocka_unit_test_setup_teardown(destroy__with_tags_left, set_up, tear_down),
      cmocka_unit_test_setup_teardown(events__come_for_operations_and_messages, set_up_pair, tear_down),
      cmocka_unit_test_setup_teardown(queue_pair__keeps_its_own_completion_queue, set_up, tear_down),
      cmocka_unit_test_setup_teardown(operations__beyond_the_limits__are_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__of_a_peer_that_ends__fails, set_up, tear_down),
  };
  // --check reports what the program does wrong in these.
  const CMUnitTest mistakes[] = {
      cmocka_unit_test_setup_teardown(eager__too_long_for_its_entry__fails, set_up, tear_down),
      cmocka_unit_test_setup_teardown(rendezvous__with_a_wrong_key__fails, set_up, tear_down),
  };
  const int failed = cmocka_run_group_tests(tests, nullptr, nullptr);
  return argc > 1 ? failed : failed + cmocka_run_group_tests(mistakes, nullptr, nullptr);
}
