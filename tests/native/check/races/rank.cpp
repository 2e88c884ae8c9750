// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/check/races/rank.hpp"

#include "tests/native/kills/stage.hpp"

namespace dapple::tests {

bool Rank::patience(const std::atomic<int>& count) {
  return await(kPatience, [&] { return count >= kRanks; });
}

bool Rank::open() {
  ibv_context* context = open_loopback();
  ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  mr_ = pd == nullptr ? nullptr : ibv_reg_mr(pd, memory_, sizeof memory_, kPeerRights);
  if (mr_ == nullptr) return false;
  meeting_.addresses[number_] = reinterpret_cast<uintptr_t>(memory_);
  meeting_.keys[number_] = mr_->rkey;
  for (int peer = 0; peer < kRanks; peer++) {
    for (int i = 0; i < kLinks && peer != number_; i++) {
      Link& link = links_[peer][i];
      link.sent = ibv_create_cq(context, 64, nullptr, nullptr, 0);
      link.received = ibv_create_cq(context, 64, nullptr, nullptr, 0);
      if (link.sent == nullptr || link.received == nullptr) return false;
      ibv_qp_init_attr attr = {};
      attr.send_cq = link.sent;
      attr.recv_cq = link.received;
      attr.cap = {32, 32, 1, 1, 0};
      attr.qp_type = IBV_QPT_RC;
      link.qp = ibv_create_qp(pd, &attr);
      if (link.qp == nullptr) return false;
      meeting_.qpns[number_][peer][i] = link.qp->qp_num;
    }
  }
  meeting_.known++;
  if (!patience(meeting_.known)) return false;
  for (int peer = 0; peer < kRanks; peer++) {
    for (int i = 0; i < kLinks && peer != number_; i++) {
      // A second: the machine may be busy.
      if (!connect(links_[peer][i].qp, meeting_.qpns[peer][number_][i], 18)) return false;
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
  if (ibv_post_send(used.qp, &request, &bad) != 0) return false;
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
  return ibv_post_recv(links_[program(from)][0].qp, &request, &bad) == 0;
}

bool Rank::receive(int from) {
  return take_at(from, kMessages + static_cast<size_t>(program(from)) * 64);
}

bool Rank::waits_for(size_t place, uint64_t value) {
  return await(kPatience, [&] { return word(place) == value; });
}

}  // namespace dapple::tests
