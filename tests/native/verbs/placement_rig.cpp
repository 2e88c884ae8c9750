// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/verbs/placement_rig.hpp"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

namespace dapple::tests {
namespace {

constexpr unsigned kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

uint8_t timeout_of_this_run = 20;

}  // namespace

PlacementStage* placement_stage = nullptr;

bool PlacementEnd::open() {
  context_ = open_loopback();
  if (context_ == nullptr) return false;
  pd_ = ibv_alloc_pd(context_);
  cq_ = ibv_create_cq(context_, 2 * kRequests, nullptr, nullptr, 0);
  if (pd_ == nullptr || cq_ == nullptr) return false;
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq_;
  attr.cap = {kRequests, kRequests, 1, 1, 64};
  attr.qp_type = IBV_QPT_RC;
  qp_ = ibv_create_qp(pd_, &attr);
  return qp_ != nullptr;
}

bool PlacementEnd::register_memory(void* memory, size_t size, unsigned access) {
  mr_ = ibv_reg_mr(pd_, memory, size, static_cast<int>(access));
  buffer = static_cast<char*>(memory);
  return mr_ != nullptr;
}

bool PlacementEnd::deregister() {
  return ibv_dereg_mr(mr_) == 0;
}

bool PlacementEnd::move_region(void* memory) {
  return ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, memory, mr_->length, 0) == 0;
}

bool PlacementEnd::connect(uint8_t timeout) {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_RESET;
  if (ibv_modify_qp(qp_, &attr, IBV_QP_STATE) != 0) return false;
  placement_stage->qpn[number_] = qp_->qp_num;
  const std::atomic<uint32_t>& peer = placement_stage->qpn[1 - number_];
  return await(kMomentOfPatience, [&] { return peer != 0; }) && tests::connect(qp_, peer, timeout);
}

bool PlacementEnd::post_receive(size_t size, size_t offset) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(buffer) + offset, static_cast<uint32_t>(size), mr_->lkey};
  ibv_recv_wr request = {0, nullptr, &piece, 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(qp_, &request, &bad) == 0;
}

bool PlacementEnd::post(ibv_wr_opcode opcode, size_t offset, uint32_t length, uint32_t rkey, size_t local) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(buffer) + local, length, mr_->lkey};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma = {placement_stage->address + offset, rkey};
  return ibv_post_send(qp_, &request, &bad) == 0;
}

ibv_wc_status PlacementEnd::complete() {
  ibv_wc completion = {};
  for (const double end = now() + kMomentOfPatience; now() < end;) {
    const int got = ibv_poll_cq(cq_, 1, &completion);
    if (got != 0) return got == 1 ? completion.status : IBV_WC_GENERAL_ERR;
  }
  return IBV_WC_GENERAL_ERR;
}

ibv_wc_status PlacementEnd::transfer(ibv_wr_opcode opcode, size_t offset, uint32_t length) {
  return post(opcode, offset, length, placement_stage->rkey, offset) ? complete() : IBV_WC_GENERAL_ERR;
}

void give(Order order) {
  placement_stage->order = order;
  placement_stage->given++;
}

bool order(Order order) {
  give(order);
  return await(kMomentOfPatience, [] { return placement_stage->obeyed == placement_stage->given; });
}

bool reconnect(PlacementEnd& sender) {
  placement_stage->qpn[0] = placement_stage->qpn[1] = 0;
  give(Order::kReconnect);
  return sender.connect(timeout_of_this_run) &&
         await(kMomentOfPatience, [] { return placement_stage->obeyed == placement_stage->given; });
}

namespace {

uint64_t sum_of(const char* first, const char* second) {
  static Watcher watcher;
  soft::StatusReply status;
  if (!watcher.status(status)) failed("dappled does not tell its status");
  return counter(status, first) + (second != nullptr ? counter(status, second) : 0);
}

}  // namespace

uint64_t placed() {
  return sum_of("placed_writes", "placed_reads");
}

uint64_t fetched() {
  return sum_of("fetches", nullptr);
}

uint64_t fetched_ahead() {
  return sum_of("fetched_ahead", nullptr);
}

bool await_fetch(PlacementEnd& sender) {
  const uint64_t before = fetched();
  return await(kMomentOfPatience, [&] {
    return order(Order::kReceiveAll) && sender.transfer(IBV_WR_SEND, 0, 65536) == IBV_WC_SUCCESS && fetched() > before;
  });
}

bool await_placement(PlacementEnd& sender) {
  const uint64_t before = placed();
  return await(kMomentOfPatience,
               [&] { return sender.transfer(IBV_WR_RDMA_WRITE, 0, 8) == IBV_WC_SUCCESS && placed() > before; });
}

namespace {

bool publish(PlacementEnd& target, unsigned access) {
  if (!target.register_memory(placement_stage->reached, kReached, access)) return false;
  placement_stage->address = reinterpret_cast<uintptr_t>(placement_stage->reached);
  placement_stage->rkey = target.mr()->rkey;
  return true;
}

bool move(PlacementEnd& target) {
  static char elsewhere[kReached];
  char* const here = placement_stage->reached;
  return target.move_region(target.mr()->addr == here ? elsewhere : here);
}

bool obey(PlacementEnd& target, Order order) {
  switch (order) {
    case Order::kReconnect:
      return target.connect(timeout_of_this_run);
    case Order::kRegister:
      return publish(target, kRights);
    case Order::kRegisterReadOnly:
      return publish(target, IBV_ACCESS_REMOTE_READ);
    case Order::kDeregister:
      return target.deregister();
    case Order::kReregister:
      return move(target);
    case Order::kToError:
      return to_error(target.qp());
    case Order::kReceive:
      return target.post_receive();
    case Order::kReceiveAll:
      return target.post_receive(kReached);
    case Order::kReceiveHalves:
      return target.post_receive(kReached / 2) && target.post_receive(kReached / 2, kReached / 2);
    case Order::kFork: {
      const pid_t child = start_process([] { return pause(); });
      return child > 0;
    }
    case Order::kExecute:
      placement_stage->obeyed++;
      execl("/bin/sleep", "sleep", "1000", nullptr);
      return false;
  }
  return false;
}

int be_target() {
  PlacementEnd target(1);
  // The sender waits for the key: before the connection is ready, packets would be lost.
  if (!target.open() || !target.connect(timeout_of_this_run) || !publish(target, kRights)) return 1;
  for (;;) {
    const uint32_t obeyed = placement_stage->obeyed;
    if (!await(2 * kMomentOfPatience, [&] { return placement_stage->given != obeyed; })) return 2;
    if (!obey(target, placement_stage->order)) return 3;
    placement_stage->obeyed++;
  }
}

int be_sender(void (*body)(PlacementEnd&)) {
  const uint32_t before = failures();
  void* memory = mmap(nullptr, kReached, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  PlacementEnd sender(0);
  if (!sender.open() || !sender.register_memory(memory, kReached, IBV_ACCESS_LOCAL_WRITE) ||
      !sender.connect(timeout_of_this_run) || !await(kMomentOfPatience, [] { return placement_stage->rkey != 0; }))
    return 1;
  body(sender);
  return failures() == before ? 0 : 2;
}

constexpr int kCannotConfine = 77;

// The first process that has the device starts dappled, which must not end with a PID namespace.
bool confine(bool (*how)(), const std::atomic<uint32_t>* before) {
  return how == nullptr || (await(kMomentOfPatience, [before] { return before == nullptr || *before != 0; }) && how());
}

pid_t start(const char* off, bool (*how)(), const std::atomic<uint32_t>* before, std::atomic<pid_t>& number,
            int (*run)(void (*)(PlacementEnd&)), void (*body)(PlacementEnd&)) {
  number = 0;
  return start_process([&] {
    if (off != nullptr) setenv(off, "off", 1);
    if (!confine(how, before)) return kCannotConfine;
    number = getpid();
    return run(body);
  });
}

}  // namespace

void run_placement(const char* name, void (*body)(PlacementEnd& sender), const PlacementOptions& options) {
  printf("%s\n", name);
  fflush(stdout);
  PlacementStage& stage = *placement_stage;
  stage.given = stage.obeyed = 0;
  stage.rkey = stage.qpn[0] = stage.qpn[1] = 0;
  memset(stage.reached, 0, sizeof stage.reached);
  timeout_of_this_run = options.timeout;
  const pid_t target = start(
      options.target_off, options.confine_target, options.confine_sender == nullptr ? &stage.qpn[0] : nullptr,
      stage.target, [](void (*)(PlacementEnd&)) { return be_target(); }, body);
  const pid_t sender = start(options.sender_off, options.confine_sender, &stage.qpn[1], stage.sender, be_sender, body);
  int status = 0;
  waitpid(sender, &status, 0);
  const bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == kCannotConfine;
  if (skipped) skip_program("the system does not let this test confine a process: ", name);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) failed(name, "the sender");
  kill(target, SIGCONT);
  kill(target, SIGKILL);
  waitpid(target, nullptr, 0);
  // The children that an order has made.
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

}  // namespace dapple::tests
