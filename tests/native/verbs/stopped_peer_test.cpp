// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes of one host, of which one is stopped while the other sends more than their ring holds. The sender waits
// without using its CPU, and everything arrives when the other goes on. Runs under dapple-run.
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kPairs = 16;
constexpr uint32_t kWrites = 8;  // of each queue pair, kBufferSize bytes each
constexpr double kPatience = 60;
constexpr double kStopped = 2;
constexpr double kMaxCpu = 0.2;  // of the time that the peer is stopped
constexpr uint8_t kAckTimeout = 20;

struct Shared {
  std::atomic<uint32_t> qpn[2][kPairs];
  std::atomic<uint64_t> address{0};
  std::atomic<uint32_t> rkey{0};
  std::atomic<int> ready{0};
  std::atomic<bool> over{false};
};

Shared* shared;

struct Member {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* qps[kPairs] = {};
  alignas(4096) char buffer[kBufferSize] = {};

  bool open(int number) {
    context = open_loopback();
    if (context == nullptr) return false;
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, kPairs * kWrites, nullptr, nullptr, 0);
    if (pd == nullptr || cq == nullptr) return false;
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (mr == nullptr) return false;
    for (uint32_t i = 0; i < kPairs; i++) {
      ibv_qp_init_attr attr = {};
      attr.send_cq = attr.recv_cq = cq;
      attr.cap = {kWrites, 1, 1, 1, 0};
      attr.qp_type = IBV_QPT_RC;
      qps[i] = ibv_create_qp(pd, &attr);
      if (qps[i] == nullptr) return false;
      shared->qpn[number][i] = qps[i]->qp_num;
      const std::atomic<uint32_t>& peer = shared->qpn[1 - number][i];
      if (!await(kPatience, [&] { return peer != 0; }) || !connect(qps[i], peer, kAckTimeout)) return false;
    }
    if (number == 1) {
      shared->address = reinterpret_cast<uintptr_t>(buffer);
      shared->rkey = mr->rkey;
    }
    shared->ready++;
    return await(kPatience, [] { return shared->ready == 2; });
  }

  bool write(ibv_qp* qp) {
    ibv_sge piece = {reinterpret_cast<uintptr_t>(buffer), sizeof buffer, mr->lkey};
    ibv_send_wr request = {}, *bad = nullptr;
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma = {shared->address, shared->rkey};
    return ibv_post_send(qp, &request, &bad) == 0;
  }
};

int target() {
  const auto member = std::make_unique<Member>();
  if (!member->open(1) || !await(kPatience, [] { return shared->over.load(); })) return 1;
  for (char byte : member->buffer) {
    if (byte != 7) return 2;
  }
  return 0;
}

double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

int send_to_stopped(pid_t peer) {
  Watcher watcher;
  soft::StatusReply status;
  const auto member = std::make_unique<Member>();
  if (!member->open(0)) return 1;
  memset(member->buffer, 7, sizeof member->buffer);
  kill(peer, SIGSTOP);
  for (uint32_t i = 0; i < kPairs * kWrites; i++) {
    if (!member->write(member->qps[i % kPairs])) return 2;
  }
  const double before = cpu_seconds();
  usleep(static_cast<useconds_t>(kStopped * 1e6));
  const double used = cpu_seconds() - before;
  kill(peer, SIGCONT);
  if (used > kMaxCpu * kStopped) {
    char text[32];
    snprintf(text, sizeof text, "%.2f s of %.0f s", used, kStopped);
    failed("the sender uses its CPU while it waits", text);
  }
  uint32_t done = 0;
  const bool all = await(kPatience, [&] {
    ibv_wc completion;
    for (int got; (got = ibv_poll_cq(member->cq, 1, &completion)) == 1; done++) {
      if (completion.status != IBV_WC_SUCCESS) failed("a Write", ibv_wc_status_str(completion.status));
    }
    return done == kPairs * kWrites;
  });
  if (!all) failed("Writes do not complete");
  if (!watcher.status(status) || counter(status, "same_host_sent_packets") == 0) failed("no packet went by the ring");
  return failures() == 0 ? 0 : 3;
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  const pid_t peer = start_process(target);
  const pid_t sender = start_process([&] { return send_to_stopped(peer); });
  if (!ends_with(sender, 0)) failed("the sender");
  // The sender may have failed while the peer was stopped.
  kill(peer, SIGCONT);
  shared->over = true;
  if (!ends_with(peer, 0)) failed("the target");
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
