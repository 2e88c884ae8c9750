// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/tag_rig.hpp"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

namespace dapple::tests {

Tags tags;

ibv_cq_ex* make_tag_cq(ibv_comp_channel* channel) {
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = 200;
  attr.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_TM_INFO;
  attr.channel = channel;
  return ibv_create_cq_ex(pair->context, &attr);
}

ibv_srq_init_attr_ex tag_attributes() {
  ibv_srq_init_attr_ex attr = {};
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  attr.srq_type = IBV_SRQT_TM;
  attr.attr = {20, 2, 0};
  attr.pd = pair->pd;
  attr.cq = ibv_cq_ex_to_cq(tags.cq);
  attr.tm_cap = {kTags, kOperations};
  return attr;
}

ibv_qp* make_tag_qp(ibv_srq* srq, uint32_t sends, ibv_qp_type type) {
  ibv_qp_init_attr attr = {};
  attr.qp_type = type;
  attr.srq = srq;
  attr.send_cq = attr.recv_cq = pair->a.cq;
  attr.cap = {sends, srq == nullptr ? kDepth : 0, sends == 0 ? 0u : 2u, srq == nullptr ? 1u : 0, sends == 0 ? 0u : 64u};
  errno = 0;
  return ibv_create_qp(pair->pd, &attr);
}

bool begin_tags(uint32_t receivers_sends, ibv_comp_channel* channel) {
  tags.cq = make_tag_cq(channel);
  if (tags.cq == nullptr) return false;
  ibv_srq_init_attr_ex attr = tag_attributes();
  tags.srq = ibv_create_srq_ex(pair->context, &attr);
  if (tags.srq == nullptr) return false;
  tags.receiver = make_tag_qp(tags.srq, receivers_sends);
  tags.sender = make_tag_qp(nullptr, kDepth);
  if (tags.receiver == nullptr || tags.sender == nullptr) return false;
  for (size_t i = 0; i < kBufferSize; ++i) pair->a.buffer[i] = static_cast<char>(i * 7 + i / 256);
  memset(pair->b.buffer, '.', kBufferSize);
  return connect(tags.receiver, tags.sender->qp_num) && connect(tags.sender, tags.receiver->qp_num);
}

int set_up_tags(void**) {
  tags = {};
  return begin({}) && begin_tags() ? 0 : -1;
}

int set_up_no_tags(void**) {
  tags = {};
  return begin({}) ? 0 : -1;
}

int tear_down_tags(void** state) {
  bool good = true;
  if (tags.sender != nullptr) good = ibv_destroy_qp(tags.sender) == 0;
  if (tags.receiver != nullptr) good = ibv_destroy_qp(tags.receiver) == 0 && good;
  if (tags.srq != nullptr) good = ibv_destroy_srq(tags.srq) == 0 && good;
  if (tags.cq != nullptr) good = ibv_destroy_cq(ibv_cq_ex_to_cq(tags.cq)) == 0 && good;
  return finish(state) == 0 && good ? 0 : -1;
}

Message next_message() {
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
  const Message got = next_message();
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

uint32_t add_tag(uint64_t id, uint64_t tag, size_t offset, uint32_t length, unsigned flags) {
  ibv_sge segment = place(offset, length);
  ibv_ops_wr wr = addition(id, tag, UINT64_MAX, &segment);
  assert_int_equal(operate(wr), 0);
  expect_message(id + 1000, IBV_WC_TM_ADD, flags);
  return wr.tm.handle;
}

int remove_tag(uint64_t id, uint32_t handle, int flags) {
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

void write_header(uint8_t opcode, uint64_t tag, uint32_t priv) {
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

void post_message(uint64_t id, uint32_t length) {
  assert_int_equal(post_send(tags.sender, pair->a, id, IBV_WR_SEND, 0, length), 0);
}

void send_message(uint64_t id, uint32_t length) {
  post_message(id, length);
  expect(pair->a.cq, id, IBV_WC_SUCCESS, IBV_WC_SEND);
}

void receive_end(uint64_t id, size_t offset) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(pair->a.buffer) + offset, 64, pair->a.mr->lkey};
  ibv_recv_wr request = {id, nullptr, &segment, 1};
  ibv_recv_wr* bad = nullptr;
  assert_int_equal(ibv_post_recv(tags.sender, &request, &bad), 0);
}

}  // namespace dapple::tests
