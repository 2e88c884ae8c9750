// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that a target takes back, and ends of the target's or the sender's program, during Writes that need no help of
// the target. Runs under dapple-run.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/native/verbs/placement_rig.hpp"

using namespace dapple::tests;

namespace {

constexpr uint32_t kWriteSize = 1024 * 1024;

char* reached() {
  return placement_stage->reached;
}

void copy_of_reached(char* to) {
  memcpy(to, reached(), kWriteSize);
}

// Memory that the sender shares with its children.
struct Progress {
  std::atomic<uint32_t> round{0};    // the number of the round in which a Write has succeeded
  std::atomic<uint32_t> settled{0};  // the last round that needs another one
};

Progress* make_progress() {
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) Progress;
}

// Writes until one is refused.
void write_until_refused(PlacementEnd& sender, Progress& progress, uint32_t round) {
  for (uint8_t value = 1;; value++) {
    memset(sender.buffer, value, kWriteSize);
    if (sender.transfer(IBV_WR_RDMA_WRITE, 0, kWriteSize) != IBV_WC_SUCCESS) return;
    progress.round = round;
  }
}

// The target has taken the memory back: no byte changes any more.
void expect_no_change(const char* what) {
  static char before[kWriteSize];
  copy_of_reached(before);
  usleep(20000);
  if (memcmp(before, reached(), kWriteSize) != 0) failed(what, "the memory has changed afterwards");
}

// A second process gives the order and looks at the memory while the sender writes.
void taken_back_during_writes(PlacementEnd& sender, Order taking, const char* what) {
  constexpr uint32_t kRounds = 30;
  Progress* progress = make_progress();
  if (progress == nullptr || !await_placement(sender)) return failed("nothing is placed");
  for (uint32_t round = 1; round <= kRounds; round++) {
    const pid_t witness = start_process([&] {
      if (!await(kMomentOfPatience, [&] { return progress->round == round; })) return 1;
      usleep(round * 37);
      if (!order(taking)) return 2;
      expect_no_change(what);
      return failures() == 0 ? 0 : 3;
    });
    write_until_refused(sender, *progress, round);
    if (!ends_with(witness, 0)) return failed(what, "the witness");
    if (taking == Order::kDeregister && !order(Order::kRegister)) return failed("no registration");
    if (taking == Order::kReregister && !order(Order::kReregister)) return failed("no way back");
    if (!reconnect(sender)) return failed("no connection");
  }
}

void key_is_revoked(PlacementEnd& sender) {
  taken_back_during_writes(sender, Order::kDeregister, "ibv_dereg_mr");
}

void region_moves(PlacementEnd& sender) {
  taken_back_during_writes(sender, Order::kReregister, "ibv_rereg_mr");
}

void queue_pair_goes_to_error(PlacementEnd& sender) {
  taken_back_during_writes(sender, Order::kToError, "ibv_modify_qp");
}

// Stops the sender, its parent, again and again, until it stops it in the middle of a copy. Returns 0, or the number of
// the failure.
int stop_within_a_copy(pid_t sender, Progress& progress) {
  constexpr uint32_t kTries = 30;
  const auto obeyed = [] { return placement_stage->obeyed == placement_stage->given; };
  for (uint32_t round = 1; round <= kTries; round++) {
    if (!await(kMomentOfPatience, [&] { return progress.round == round; })) return 1;
    usleep(round * 997);
    kill(sender, SIGSTOP);
    give(Order::kDeregister);
    const bool returned = await(2.5, obeyed);
    kill(sender, SIGCONT);
    if (!await(kMomentOfPatience, obeyed)) return 2;
    if (!returned) return 0;
    progress.settled = round;
  }
  return 3;
}

void sender_is_stopped(PlacementEnd& sender) {
  Progress* progress = make_progress();
  if (progress == nullptr || !await_placement(sender)) return failed("nothing is placed");
  const pid_t self = getpid();
  const pid_t stopper = start_process([&] { return stop_within_a_copy(self, *progress); });
  int status = 0;
  for (uint32_t round = 1;; round++) {
    write_until_refused(sender, *progress, round);
    bool ended = false;
    if (!await(2 * kMomentOfPatience, [&] {
          ended = waitpid(stopper, &status, WNOHANG) != 0;
          return ended || progress->settled == round;
        }))
      return failed("the other process waits");
    if (ended) break;
    if (!order(Order::kRegister) || !reconnect(sender)) return failed("no connection");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) failed("no call has waited for the stopped sender");
}

// The sender takes the source of a Send back, and changes it. No later byte comes to the target.
void source_is_taken_back(PlacementEnd& sender) {
  constexpr uint32_t kRounds = 60, kSend = 3 * 1024 * 1024;
  for (uint32_t round = 0; round < kRounds; round++) {
    if (!await_fetch(sender) || !order(Order::kReceiveAll)) return failed("nothing is fetched");
    memset(sender.buffer, 1, kReached);
    memset(reached(), 0, kReached);
    if (!sender.post(IBV_WR_SEND, 0, kSend, 0, 0)) return failed("not posted");
    usleep(round * 10);
    if (!sender.deregister()) return failed("no deregistration");
    memset(sender.buffer, 9, kReached);
    const ibv_wc_status status = sender.complete();
    if (status != IBV_WC_SUCCESS && status != IBV_WC_LOC_PROT_ERR) failed("a Send", ibv_wc_status_str(status));
    usleep(2000);
    if (memchr(reached(), 9, kReached) != nullptr) failed("a byte was fetched after ibv_dereg_mr");
    if (!sender.register_memory(sender.buffer, kReached, IBV_ACCESS_LOCAL_WRITE)) return failed("no registration");
    if (!reconnect(sender)) return failed("no connection");
  }
}

// The sender's queue pair enters the error state while the peer fetches the bytes. No later byte comes to the target.
void sender_fails_during_sends(PlacementEnd& sender) {
  constexpr uint32_t kRounds = 30, kSend = 3 * 1024 * 1024;
  for (uint32_t round = 0; round < kRounds; round++) {
    if (!await_fetch(sender) || !order(Order::kReceiveAll)) return failed("nothing is fetched");
    memset(sender.buffer, 1, kReached);
    memset(reached(), 0, kReached);
    if (!sender.post(IBV_WR_SEND, 0, kSend, 0, 0)) return failed("not posted");
    usleep(round * 20);
    if (!to_error(sender.qp())) return failed("no error");
    memset(sender.buffer, 9, kReached);
    sender.complete();
    usleep(2000);
    if (memchr(reached(), 9, kReached) != nullptr) failed("a byte was fetched after ibv_modify_qp");
    if (!reconnect(sender)) return failed("no connection");
  }
}

void target_executes(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  if (!order(Order::kExecute)) return failed("no other program");
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/%d/comm", placement_stage->target.load());
  const bool executes = await(kMomentOfPatience, [&] {
    FILE* file = fopen(path, "re");
    if (file == nullptr) return false;
    const bool is_read = fscanf(file, "%31s", name) == 1;
    fclose(file);
    return is_read && strcmp(name, "sleep") == 0;
  });
  if (!executes) return failed("the target does not execute");
  memset(reached(), 1, kReached);
  memset(sender.buffer, 5, kWriteSize);
  const uint64_t before = placed();
  const ibv_wc_status status = sender.transfer(IBV_WR_RDMA_WRITE, 0, kWriteSize);
  if (status != IBV_WC_RETRY_EXC_ERR) failed("a Write to a program that is gone", ibv_wc_status_str(status));
  if (placed() != before || reached()[0] != 1) failed("a Write has reached another program");
}

// The status of the first Write that fails. The kernel may take a while to end a killed program.
ibv_wc_status write_until_gone(PlacementEnd& sender) {
  for (const double end = now() + kMomentOfPatience;;) {
    const ibv_wc_status status = sender.transfer(IBV_WR_RDMA_WRITE, 0, kWriteSize);
    if (status != IBV_WC_SUCCESS || now() > end) return status;
  }
}

void target_is_killed(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  kill(placement_stage->target, SIGKILL);
  const ibv_wc_status status = write_until_gone(sender);
  if (status != IBV_WC_RETRY_EXC_ERR) failed("a Write to a program that is gone", ibv_wc_status_str(status));
}

// The copies of the descriptors in children neither redirect nor prevent anything.
void both_fork(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  if (!order(Order::kFork)) return failed("no fork");
  const pid_t child = start_process([] { return pause(); });
  memset(sender.buffer, 5, kWriteSize);
  const uint64_t before = placed();
  if (sender.transfer(IBV_WR_RDMA_WRITE, 0, kWriteSize) != IBV_WC_SUCCESS) failed("a Write after a fork");
  if (reached()[0] != 5 || reached()[kWriteSize - 1] != 5 || placed() == before) failed("the Write was not placed");
  kill(placement_stage->target, SIGKILL);
  if (write_until_gone(sender) != IBV_WC_RETRY_EXC_ERR) failed("a child hides the target's end");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

int main() {
  placement_stage = prepare_stage<PlacementStage>();
  run_placement("a key is revoked during Writes", key_is_revoked);
  run_placement("a region moves during Writes", region_moves);
  run_placement("a queue pair goes to error during Writes", queue_pair_goes_to_error, {.timeout = 12});
  run_placement("the sender is stopped inside of a Write", sender_is_stopped);
  run_placement("the source of a Send is taken back", source_is_taken_back);
  run_placement("the sender's queue pair goes to error during Sends", sender_fails_during_sends);
  run_placement("the target executes another program", target_executes, {.timeout = 14});
  run_placement("the target is killed", target_is_killed, {.timeout = 14});
  run_placement("both ends fork", both_fork, {.timeout = 14});
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
