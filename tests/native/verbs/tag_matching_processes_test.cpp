// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A list of tags in one process, and its peer in another one: long eager messages, whose bytes the receiver may fetch,
// and rendezvous, whose bytes it may copy from the sender's memory. Then the sender dies in a rendezvous. Runs under
// dapple-run. Argument "by-packets": nothing is copied without a packet.
#include <endian.h>
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/two_processes.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kHeader = sizeof(ibv_tmh);
constexpr uint32_t kBothHeaders = sizeof(ibv_tmh) + sizeof(ibv_rvh);
constexpr uint32_t kSize = 40'000;
constexpr uint32_t kSource = 128;  // of a rendezvous, in the sender's memory
constexpr uint64_t kRounds = 40;   // half of them are rendezvous
constexpr uint64_t kMaxRounds = 2'000;
constexpr uint64_t kTag = 0x77;
constexpr uint8_t kTimeout = 12;

struct Shared {
  Meeting meeting;
  std::atomic<uint64_t> received{0};
  std::atomic<bool> is_over{false};  // the next message is the last
  std::atomic<bool> has_last{false};
};

Shared* shared;

char byte_of(uint64_t round, uint32_t place) {
  return static_cast<char>(place * 3 + place / 253 + round);
}

// --- The receiver

struct Receiver {
  End end;
  ibv_cq_ex* cq = nullptr;
  ibv_srq* srq = nullptr;
};

bool make_receiver(Receiver& made) {
  ibv_context* context = open_loopback();
  ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  if (pd == nullptr) return false;
  ibv_cq_init_attr_ex of_cq = {};
  of_cq.cqe = 100;
  of_cq.wc_flags = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_TM_INFO;
  made.cq = ibv_create_cq_ex(context, &of_cq);
  made.end.mr = ibv_reg_mr(pd, made.end.buffer, kBufferSize, int{IBV_ACCESS_LOCAL_WRITE});
  if (made.cq == nullptr || made.end.mr == nullptr) return false;
  ibv_srq_init_attr_ex of_srq = {};
  of_srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  of_srq.srq_type = IBV_SRQT_TM;
  of_srq.attr = {4, 1, 0};
  of_srq.pd = pd;
  of_srq.cq = ibv_cq_ex_to_cq(made.cq);
  of_srq.tm_cap = {4, 8};
  made.srq = ibv_create_srq_ex(context, &of_srq);
  if (made.srq == nullptr) return false;
  ibv_qp_init_attr of_qp = {};
  of_qp.qp_type = IBV_QPT_RC;
  of_qp.srq = made.srq;
  of_qp.send_cq = of_qp.recv_cq = ibv_cq_ex_to_cq(made.cq);
  made.end.qp = ibv_create_qp(pd, &of_qp);
  if (made.end.qp == nullptr) return false;
  shared->meeting.qpn[1] = made.end.qp->qp_num;
  const std::atomic<uint32_t>& peer = shared->meeting.qpn[0];
  return await(kPatience, [&] { return peer != 0; }) && connect(made.end.qp, peer, kTimeout);
}

bool add_tag(Receiver& receiver, uint64_t id) {
  memset(receiver.end.buffer, '.', kBufferSize);
  ibv_sge piece = {reinterpret_cast<uintptr_t>(receiver.end.buffer), kSize, receiver.end.mr->lkey};
  ibv_ops_wr wr = {}, *bad = nullptr;
  wr.opcode = IBV_WR_TAG_ADD;
  wr.flags = IBV_OPS_SIGNALED;
  wr.tm.add.recv_wr_id = id;
  wr.tm.add.sg_list = &piece;
  wr.tm.add.num_sge = 1;
  wr.tm.add.tag = kTag;
  wr.tm.add.mask = UINT64_MAX;
  ibv_wc completion = {};
  return ibv_post_srq_ops(receiver.srq, &wr, &bad) == 0 && wait_for(ibv_cq_ex_to_cq(receiver.cq), completion) &&
         completion.opcode == IBV_WC_TM_ADD;
}

bool wait_for_flags(Receiver& receiver, uint64_t id, unsigned flags) {
  ibv_wc completion = {};
  return wait_for(ibv_cq_ex_to_cq(receiver.cq), completion) && completion.status == IBV_WC_SUCCESS &&
         completion.opcode == IBV_WC_TM_RECV && completion.wr_id == id && completion.wc_flags == flags;
}

bool has(const char* bytes, uint64_t round, uint32_t first, uint32_t length) {
  for (uint32_t i = 0; i < length; i++) {
    if (bytes[i] != byte_of(round, first + i)) return false;
  }
  return bytes[length] == '.';
}

bool has_grown(const soft::StatusReply& before, const soft::StatusReply& now, const char* key) {
  return counter(now, key) != counter(before, key);
}

int receive_all(bool by_packets) {
  const auto receiver = std::make_unique<Receiver>();
  Watcher watcher;
  soft::StatusReply before, status;
  if (!make_receiver(*receiver) || !add_tag(*receiver, 0) || !meet(shared->meeting)) return 1;
  if (!watcher.status(before)) return 2;
  uint64_t round = 0;
  for (bool is_over = false; !is_over; round++) {
    if (!wait_for_flags(*receiver, round, IBV_WC_TM_MATCH)) return 3;
    if (!wait_for_flags(*receiver, round, IBV_WC_TM_DATA_VALID)) return 4;
    const bool is_eager = round % 2 == 0;
    if (!has(receiver->end.buffer, round, is_eager ? kHeader : kSource, is_eager ? kSize - kHeader : kSize - 1000))
      return 5;
    if (!add_tag(*receiver, round + 1)) return 6;
    if (!watcher.status(status)) return 7;
    // The two programs copy without packets as soon as they have proved that they may, which takes a while.
    const bool copies = has_grown(before, status, "placed_reads") && has_grown(before, status, "fetches");
    is_over = round + 1 >= (by_packets || copies ? kRounds : kMaxRounds);
    shared->is_over = is_over;
    shared->received = round + 1;
  }
  if (has_grown(before, status, "placed_reads") == by_packets) failed("the Reads of rendezvous");
  if (has_grown(before, status, "fetches") == by_packets) failed("the fetches of eager messages");
  // The sender dies.
  ibv_wc completion = {};
  if (!wait_for_flags(*receiver, round, IBV_WC_TM_MATCH)) return 8;
  shared->has_last = true;
  if (!wait_for(ibv_cq_ex_to_cq(receiver->cq), completion) || completion.wr_id != round) return 9;
  if (completion.status == IBV_WC_SUCCESS && completion.wc_flags != IBV_WC_TM_DATA_VALID) return 10;
  return static_cast<int>(failures());
}

// --- The sender

bool send_one(End& end, uint32_t length) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(end.buffer), length, end.mr->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return ibv_post_send(end.qp, &request, &bad) == 0;
}

bool post_receive_of_end(End& end) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(end.buffer) + kBufferSize - 64, 64, end.mr->lkey};
  ibv_recv_wr request = {1, nullptr, &piece, 1}, *bad = nullptr;
  return ibv_post_recv(end.qp, &request, &bad) == 0;
}

void write_headers(End& end, bool is_eager, uint32_t rkey) {
  ibv_tmh header = {};
  header.opcode = is_eager ? IBV_TMH_EAGER : IBV_TMH_RNDV;
  header.tag = htobe64(kTag);
  memcpy(end.buffer, &header, sizeof header);
  if (is_eager) return;
  ibv_rvh rendezvous = {};
  rendezvous.va = htobe64(reinterpret_cast<uintptr_t>(end.buffer) + kSource);
  rendezvous.rkey = htobe32(rkey);
  rendezvous.len = htobe32(kSize - 1000);
  memcpy(end.buffer + kHeader, &rendezvous, sizeof rendezvous);
}

int send_all() {
  const auto end = std::make_unique<End>();
  if (!open_end(*end, shared->meeting, 0, kTimeout) || !meet(shared->meeting)) return 1;
  ibv_mr* lent =
      ibv_reg_mr(end->mr->pd, end->buffer, kBufferSize, int{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ});
  if (lent == nullptr) return 2;
  for (uint64_t round = 0;; round++) {
    const bool is_last = shared->is_over;
    const bool is_eager = round % 2 == 0 && !is_last;
    for (uint32_t i = 0; i < kSize; i++) end->buffer[i] = byte_of(round, i);
    write_headers(*end, is_eager, lent->rkey);
    if (!is_eager && !post_receive_of_end(*end)) return 3;
    if (!send_one(*end, is_eager ? kSize : kBothHeaders)) return 4;
    if (is_last) {
      // A busy machine may send the message some time after the post.
      if (!await(kPatience, [] { return shared->has_last.load(); })) return 8;
      raise(SIGKILL);
    }
    for (int i = 0; i < (is_eager ? 1 : 2); i++) {
      ibv_wc completion = {};
      if (!wait_for(end->cq, completion) || completion.status != IBV_WC_SUCCESS) return 5;
    }
    if (!is_eager && end->buffer[kBufferSize - 64] != IBV_TMH_FIN) return 6;
    if (!await(kPatience, [&] { return shared->received == round + 1; })) return 7;
  }
}

bool is_killed(pid_t process) {
  int status = 0;
  return waitpid(process, &status, 0) == process && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace

int main(int argc, char**) {
  const bool by_packets = argc > 1;
  shared = prepare_stage<Shared>();
  const pid_t receiver = start_process([by_packets] { return receive_all(by_packets); });
  if (!is_killed(start_process(send_all))) failed("the sender");
  if (!ends_with(receiver, 0)) failed("the receiver");
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
