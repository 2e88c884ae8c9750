// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/weak_rig.hpp"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/pair.hpp"

namespace dapple::tests {
namespace {

constexpr uint32_t kPlaces = 32;
// Of make_visible().
constexpr size_t kElsewhere = kWeakBytes - 64;

}  // namespace

WeakStage* weak_stage = nullptr;

bool WeakEnd::open(void* memory) {
  ibv_context* context = open_loopback();
  ibv_pd* pd = context == nullptr ? nullptr : ibv_alloc_pd(context);
  if (pd == nullptr) return false;
  mine_ = static_cast<char*>(memory);
  cq_ = ibv_create_cq(context, 4 * kPlaces, nullptr, nullptr, 0);
  mr_ = ibv_reg_mr(pd, memory, kWeakBytes, static_cast<int>(kPeerRights));
  if (cq_ == nullptr || mr_ == nullptr) return false;
  for (int pair = 0; pair < kWeakPairs; pair++) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap = {kPlaces, kPlaces, 1, 1, 64};
    attr.qp_type = IBV_QPT_RC;
    qps_[pair] = ibv_create_qp(pd, &attr);
    if (qps_[pair] == nullptr) return false;
    weak_stage->qpn[number_][pair] = qps_[pair]->qp_num;
  }
  for (int pair = 0; pair < kWeakPairs; pair++) {
    const std::atomic<uint32_t>& peer = weak_stage->qpn[1 - number_][pair];
    if (!await(kPatience, [&] { return peer != 0; }) || !connect(qps_[pair], peer, 20)) return false;
  }
  return true;
}

void WeakEnd::post(int pair, ibv_wr_opcode opcode, size_t local, size_t remote, uint32_t length, unsigned flags,
                   uint64_t value) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(mine_) + local, length, mr_->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.wr_id = posted_[pair]++;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED | flags;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    request.wr.atomic = {weak_stage->address + remote, value, 0, weak_stage->rkey};
  } else {
    request.wr.rdma = {weak_stage->address + remote, weak_stage->rkey};
  }
  if (ibv_post_send(qps_[pair], &request, &bad) != 0) failed("not posted");
}

void WeakEnd::complete(int count) {
  for (const double end = now() + kPatience; count > 0 && now() < end;) {
    ibv_wc completion = {};
    const int got = ibv_poll_cq(cq_, 1, &completion);
    if (got == 0) continue;
    const int pair = completion.qp_num == qps_[1]->qp_num ? 1 : 0;
    if (got < 0 || completion.status != IBV_WC_SUCCESS) failed("a completion", ibv_wc_status_str(completion.status));
    if (completion.wr_id != completed_[pair]++) failed("completions of one queue pair in another order");
    count--;
  }
  if (count > 0) failed("no completion");
}

void WeakEnd::make_visible(int pair) {
  post(pair, IBV_WR_RDMA_READ, kElsewhere, kElsewhere, 1);
  complete(1);
}

namespace {

bool post_receive(WeakEnd& target, int pair) {
  ibv_recv_wr request = {}, *bad = nullptr;
  return ibv_post_recv(target.qp(pair), &request, &bad) == 0;
}

bool has_expected_bytes() {
  const volatile char* bytes = weak_stage->reached;
  for (uint32_t i = 0; i < weak_stage->compared; i++) {
    if (bytes[i] != weak_stage->expected) return false;
  }
  return true;
}

int be_target() {
  WeakEnd target(1);
  if (!target.open(weak_stage->reached)) return 1;
  for (int pair = 0; pair < kWeakPairs; pair++) {
    for (uint32_t i = 0; i < kPlaces; i++) {
      if (!post_receive(target, pair)) return 2;
    }
  }
  weak_stage->address = reinterpret_cast<uintptr_t>(weak_stage->reached);
  weak_stage->rkey = target.mr()->rkey;
  for (;;) {
    ibv_wc completion = {};
    if (ibv_poll_cq(target.cq(), 1, &completion) == 0) continue;
    if (completion.status != IBV_WC_SUCCESS) return 3;
    if (!has_expected_bytes()) weak_stage->missing++;
    __atomic_store_n(&weak_stage->reached[weak_stage->answered], weak_stage->expected, __ATOMIC_SEQ_CST);
    if (!post_receive(target, completion.qp_num == target.qp(1)->qp_num ? 1 : 0)) return 4;
    weak_stage->received++;
  }
}

int be_initiator(void (*body)(WeakEnd&)) {
  alignas(4096) static char memory[kWeakBytes];
  WeakEnd initiator(0);
  if (!initiator.open(memory) || !await(kPatience, [] { return weak_stage->rkey != 0; })) return 1;
  body(initiator);
  return failures() == 0 ? 0 : 2;
}

}  // namespace

void run_weak(const char* name, void (*body)(WeakEnd&), const WeakOptions& options) {
  printf("%s\n", name);
  fflush(stdout);
  for (auto& qpns : weak_stage->qpn) {
    for (std::atomic<uint32_t>& qpn : qpns) qpn = 0;
  }
  weak_stage->rkey = 0;
  const pid_t target = start_process([&] {
    if (options.target_off != nullptr) setenv(options.target_off, "off", 1);
    return be_target();
  });
  const pid_t initiator = start_process([&] {
    if (options.target_alone) unsetenv("DAPPLE_FAULTS");
    return be_initiator(body);
  });
  if (!ends_with(initiator, 0)) failed(name, "the initiator");
  kill(target, SIGKILL);
  int status = 0;
  waitpid(target, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) failed(name, "the target ended early");
}

}  // namespace dapple::tests
