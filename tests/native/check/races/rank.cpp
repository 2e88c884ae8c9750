// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/check/races/rank.hpp"

#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "tests/native/kills/stage.hpp"

namespace dapple::tests {

bool Rank::patience(const std::atomic<int>& count) {
  return await(kPatience, [&] { return count >= kRanks; });
}

bool Rank::make(Link& link, int number_of_link, int peer) {
  ibv_context* context = pd_->context;
  link.sent = ibv_create_cq(context, 64, nullptr, nullptr, 0);
  link.received = ibv_create_cq(context, 64, nullptr, nullptr, 0);
  if (link.sent == nullptr || link.received == nullptr) return false;
  ibv_qp_init_attr_ex attr = {};
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  attr.pd = pd_;
  attr.send_cq = link.sent;
  attr.cap = {32, 32, 1, 1, 0};
  if (kind_ != Kind::kXrc) {
    attr.recv_cq = link.received;
    attr.qp_type = IBV_QPT_RC;
    link.sender = link.receiver = ibv_create_qp_ex(context, &attr);
  } else {
    attr.qp_type = IBV_QPT_XRC_SEND;
    link.sender = ibv_create_qp_ex(context, &attr);
    ibv_qp_init_attr_ex other = {};
    other.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    other.xrcd = domain_;
    other.qp_type = IBV_QPT_XRC_RECV;
    link.receiver = ibv_create_qp_ex(context, &other);
    ibv_srq_init_attr_ex queue = {};
    queue.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    queue.srq_type = IBV_SRQT_XRC;
    queue.attr = {32, 1, 0};
    queue.pd = pd_;
    queue.xrcd = domain_;
    queue.cq = link.received;
    link.srq = ibv_create_srq_ex(context, &queue);
    uint32_t number = 0;
    if (link.srq == nullptr || ibv_get_srq_num(link.srq, &number) != 0) return false;
    meeting_.srqs[number_][peer][number_of_link] = number;
  }
  if (link.sender == nullptr || link.receiver == nullptr) return false;
  meeting_.senders[number_][peer][number_of_link] = link.sender->qp_num;
  meeting_.receivers[number_][peer][number_of_link] = link.receiver->qp_num;
  return true;
}

ibv_gid Rank::address_of(int number) const {
  ibv_gid gid = {};
  gid.raw[10] = gid.raw[11] = 0xFF;
  const uint8_t here[4] = {127, 0, 0, 1}, of_pair[4] = {10, 77, 0, static_cast<uint8_t>(1 + number % 2)};
  memcpy(gid.raw + 12, space_ == -1 ? here : of_pair, 4);
  return gid;
}

ibv_context* Rank::open_device() {
  if (space_ != -1 && number_ % 2 != 0 && setns(space_, CLONE_NEWNET) != 0) return nullptr;
  const ibv_gid own = address_of(number_);
  ibv_device** list = ibv_get_device_list(nullptr);
  ibv_context* found = nullptr;
  for (ibv_device** at = list; list != nullptr && *at != nullptr && found == nullptr; ++at) {
    ibv_context* context = ibv_open_device(*at);
    for (uint8_t i = 0; context != nullptr && i < 64 && found == nullptr; i++) {
      ibv_gid_entry entry;
      if (ibv_query_gid_ex(context, 1, i, &entry, 0) != 0 || entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
      if (memcmp(entry.gid.raw, own.raw, sizeof own.raw) != 0) continue;
      found = context;
      source_ = i;
    }
    if (context != nullptr && found == nullptr) ibv_close_device(context);
  }
  if (list != nullptr) ibv_free_device_list(list);
  return found;
}

bool Rank::join(ibv_qp* qp, int peer, uint32_t remote) const {
  // A second, since the machine may be busy; but 67 ms if each lost packet takes that long.
  const uint8_t timeout = kind_ == Kind::kLossyRc ? 14 : 18;
  return connect(qp, remote, timeout, source_, address_of(peer));
}

bool Rank::open() {
  ibv_context* context = open_device();
  pd_ = context == nullptr ? nullptr : ibv_alloc_pd(context);
  mr_ = pd_ == nullptr ? nullptr : ibv_reg_mr(pd_, memory_, sizeof memory_, kPeerRights);
  if (mr_ == nullptr) return false;
  if (kind_ == Kind::kXrc) {
    ibv_xrcd_init_attr attr = {};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = -1;
    attr.oflags = O_CREAT;
    domain_ = ibv_open_xrcd(context, &attr);
    if (domain_ == nullptr) return false;
  }
  meeting_.addresses[number_] = reinterpret_cast<uintptr_t>(memory_);
  meeting_.keys[number_] = mr_->rkey;
  for (int peer = 0; peer < kRanks; peer++) {
    for (int i = 0; i < kLinks && peer != number_; i++) {
      if (!make(links_[peer][i], i, peer)) return false;
    }
  }
  meeting_.known++;
  if (!patience(meeting_.known)) return false;
  for (int peer = 0; peer < kRanks; peer++) {
    for (int i = 0; i < kLinks && peer != number_; i++) {
      const Link& link = links_[peer][i];
      if (!join(link.sender, peer, meeting_.receivers[peer][number_][i])) return false;
      if (link.receiver == link.sender) continue;
      if (!join(link.receiver, peer, meeting_.senders[peer][number_][i])) return false;
    }
  }
  meeting_.connected++;
  return patience(meeting_.connected);
}

int Rank::begin(int number_of_case) {
  case_ = number_of_case;
  return (number_ + kRanks - case_ % kRanks) % kRanks;
}

bool Rank::end() {
  meeting_.done[case_]++;
  return patience(meeting_.done[case_]);
}

bool Rank::say_posted() {
  meeting_.posted[case_]++;
  return true;
}

bool Rank::hear_posted() {
  return await(kPatience, [&] { return meeting_.posted[case_] > 0; });
}

bool Rank::await_one(ibv_cq* cq) {
  ibv_wc completion;
  return wait_for(cq, completion) && completion.status == IBV_WC_SUCCESS;
}

bool Rank::post(int to, int link, ibv_send_wr& request, size_t place, size_t size, Wait wait) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory_) + offset_of(place), static_cast<uint32_t>(size), mr_->lkey};
  request.sg_list = &segment;
  request.num_sge = 1;
  request.send_flags = wait == kUnsignaled ? 0 : IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  Link& used = links_[program(to)][link];
  if (kind_ == Kind::kXrc) request.qp_type.xrc.remote_srqn = meeting_.srqs[program(to)][number_][link];
  if (ibv_post_send(used.sender, &request, &bad) != 0) return false;
  for (used.waiting += wait != kUnsignaled ? 1 : 0; wait == kWait && used.waiting > 0; used.waiting--) {
    if (!await_one(used.sent)) return false;
  }
  return true;
}

ibv_send_wr Rank::remote(ibv_wr_opcode opcode, int to, size_t place) const {
  ibv_send_wr request = {};
  request.opcode = opcode;
  const uint64_t address = meeting_.addresses[program(to)] + offset_of(place);
  const uint32_t key = meeting_.keys[program(to)];
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    request.wr.atomic.remote_addr = address;
    request.wr.atomic.rkey = key;
  } else {
    request.wr.rdma = {address, key};
  }
  return request;
}

bool Rank::write(int to, size_t place, size_t size, Wait wait, uint64_t value, int link) {
  // A Write that still waits has a word of its own.
  const size_t from = kScratch + 64 + posts_++ % 64 * 8;
  word(from) = value;
  ibv_send_wr request = remote(IBV_WR_RDMA_WRITE, to, place);
  return post(to, link, request, size <= 8 ? from : 0, size, wait);
}

bool Rank::write_with_immediate(int to, size_t place) {
  ibv_send_wr request = remote(IBV_WR_RDMA_WRITE_WITH_IMM, to, place);
  return post(to, 0, request, kScratch, 8, kNoWait);
}

bool Rank::read(int from, size_t place, size_t size, size_t into) {
  ibv_send_wr request = remote(IBV_WR_RDMA_READ, from, place);
  return post(from, 0, request, into, size, kWait);
}

uint64_t Rank::add(int to, size_t place, uint64_t value, Wait wait) {
  ibv_send_wr request = remote(IBV_WR_ATOMIC_FETCH_AND_ADD, to, place);
  request.wr.atomic.compare_add = value;
  return post(to, 0, request, kScratch + 8, 8, wait) ? word(kScratch + 8) : UINT64_MAX;
}

uint64_t Rank::swap(int to, size_t place, uint64_t compare, uint64_t value) {
  ibv_send_wr request = remote(IBV_WR_ATOMIC_CMP_AND_SWP, to, place);
  request.wr.atomic.compare_add = compare;
  request.wr.atomic.swap = value;
  return post(to, 0, request, kScratch + 8, 8, kWait) ? word(kScratch + 8) : UINT64_MAX;
}

bool Rank::send(int to, size_t from, Wait wait) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND;
  return post(to, 0, request, from, 8, wait);
}

bool Rank::post_receive(int from, size_t place) {
  ibv_sge segment = {reinterpret_cast<uintptr_t>(memory_) + offset_of(place), 8, mr_->lkey};
  ibv_recv_wr request = {}, *bad = nullptr;
  request.sg_list = &segment;
  request.num_sge = 1;
  const Link& link = links_[program(from)][0];
  if (link.srq != nullptr) return ibv_post_srq_recv(link.srq, &request, &bad) == 0;
  return ibv_post_recv(link.receiver, &request, &bad) == 0;
}

bool Rank::receive(int from) {
  return take_at(from, kMessages + static_cast<size_t>(program(from)) * 64);
}

bool Rank::waits_for(size_t place, uint64_t value) {
  return await(kPatience, [&] { return word(place) == value; });
}

}  // namespace dapple::tests
