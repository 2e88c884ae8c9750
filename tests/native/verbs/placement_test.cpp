// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Writes and Reads that the sender carries out in the target's memory: the bytes, the requests that still need packets,
// and the order among other requests. Runs under dapple-run.
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/kills/stage.hpp"
#include "tests/native/verbs/placement_rig.hpp"
#include "tests/task_state.h"

using namespace dapple::tests;

namespace {

constexpr size_t kSizes[] = {1, 4, 7, 8, 4096, 65541, 3 * 1024 * 1024};

char* reached() {
  return placement_stage->reached;
}

void expect(ibv_wc_status status, ibv_wc_status wanted, const char* what) {
  if (status != wanted) failed(what, ibv_wc_status_str(status));
}

// Waits until the process is stopped.
bool stop(pid_t process) {
  kill(process, SIGSTOP);
  return await(kMomentOfPatience, [process] { return task_state(process) == 'T'; });
}

char pattern(size_t at, size_t seed) {
  return static_cast<char>(at * 7 + seed + at / 251);
}

void fill(char* buffer, size_t size, size_t seed) {
  for (size_t i = 0; i < size; i++) buffer[i] = pattern(i, seed);
}

void transfer_all_sizes(PlacementEnd& sender) {
  for (const size_t size : kSizes) {
    for (const size_t offset : {size_t{0}, size_t{8}, size_t{13}}) {
      fill(sender.buffer + offset, size, size + offset);
      memset(reached(), 0, size + offset + 1);
      expect(sender.transfer(IBV_WR_RDMA_WRITE, offset, static_cast<uint32_t>(size)), IBV_WC_SUCCESS, "a Write");
      if (memcmp(reached() + offset, sender.buffer + offset, size) != 0) failed("a Write", "wrong bytes");
      if (offset > 0 && reached()[offset - 1] != 0) failed("a Write", "a byte before it");
      if (reached()[offset + size] != 0) failed("a Write", "a byte behind it");
      memset(sender.buffer + offset, 0, size);
      expect(sender.transfer(IBV_WR_RDMA_READ, offset, static_cast<uint32_t>(size)), IBV_WC_SUCCESS, "a Read");
      if (memcmp(reached() + offset, sender.buffer + offset, size) != 0) failed("a Read", "wrong bytes");
    }
  }
}

// Nothing of the target runs.
void target_is_stopped(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  if (!stop(placement_stage->target)) return failed("the target is not stopped");
  transfer_all_sizes(sender);
  kill(placement_stage->target, SIGCONT);
}

// Each transfer has a part of the memory to itself, and every fourth one is a Read.
void queue_is_full_of_transfers(PlacementEnd& sender) {
  constexpr size_t kPart = kReached / kRequests, kOurs = 3, kTheirs = 100;
  const auto is_read = [](uint32_t number) { return number % 4 == 3; };
  if (!await_placement(sender)) return failed("nothing is placed");
  fill(sender.buffer, kReached, kOurs);
  fill(reached(), kReached, kTheirs);
  for (uint32_t i = 0; i < kRequests; i++) {
    const ibv_wr_opcode opcode = is_read(i) ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
    if (!sender.post(opcode, i * kPart, kPart, placement_stage->rkey, i * kPart)) failed("a post");
  }
  for (uint32_t i = 0; i < kRequests; i++) expect(sender.complete(), IBV_WC_SUCCESS, "a transfer");
  for (size_t i = 0; i < kReached; i++) {
    const char expected = pattern(i, is_read(static_cast<uint32_t>(i / kPart)) ? kTheirs : kOurs);
    if (reached()[i] != expected || sender.buffer[i] != expected) return failed("a full queue", "wrong bytes");
  }
}

void not_placed(PlacementEnd& sender) {
  const uint64_t before = placed();
  transfer_all_sizes(sender);
  if (placed() != before) failed("a transfer was placed");
}

void expect_refused(PlacementEnd& sender, ibv_wr_opcode opcode, size_t offset, uint32_t rkey, const char* what) {
  memset(sender.buffer, 9, 4096);
  if (!reconnect(sender) || !await_placement(sender)) return failed(what, "no connection");
  memset(reached(), 1, kReached);
  const uint64_t before = placed();
  if (!sender.post(opcode, offset, 4096, rkey, 0)) failed(what, "not posted");
  expect(sender.complete(), IBV_WC_REM_ACCESS_ERR, what);
  if (placed() != before) failed(what, "it was placed");
  for (const char byte : placement_stage->reached) {
    if (byte != 1) return failed(what, "the memory has changed");
  }
}

void refused_as_by_the_engine(PlacementEnd& sender) {
  const uint32_t rkey = placement_stage->rkey;
  expect_refused(sender, IBV_WR_RDMA_WRITE, 0, rkey + 1, "a wrong key");
  expect_refused(sender, IBV_WR_RDMA_WRITE, kReached - 4095, rkey, "too far");
  expect_refused(sender, IBV_WR_RDMA_READ, kReached - 4095, rkey, "a Read too far");
  if (!order(Order::kDeregister)) return failed("no deregistration");
  if (!order(Order::kRegisterReadOnly)) return failed("no registration");
  const uint32_t read_only = placement_stage->rkey;
  if (!order(Order::kRegister)) return failed("no registration");
  expect_refused(sender, IBV_WR_RDMA_WRITE, 0, read_only, "a key for Reads");
  expect_refused(sender, IBV_WR_RDMA_WRITE, 0, rkey, "an old key");
}

void local_key_is_wrong(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  if (!sender.post(IBV_WR_RDMA_READ, 0, 101, placement_stage->rkey, kReached - 100)) failed("not posted");
  expect(sender.complete(), IBV_WC_LOC_PROT_ERR, "a Read beyond the local region");
}

void target_is_in_error(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  if (!order(Order::kToError)) return failed("no error");
  memset(reached(), 1, kReached);
  expect(sender.transfer(IBV_WR_RDMA_WRITE, 0, 4096), IBV_WC_RETRY_EXC_ERR, "a Write to a queue pair in error");
  if (reached()[0] != 1) failed("the memory has changed");
}

// A Send that has no receive holds up the Write behind it.
void write_behind_a_send(PlacementEnd& sender) {
  if (!await_placement(sender)) return failed("nothing is placed");
  memset(reached(), 1, kReached);
  memset(sender.buffer, 5, kReached);
  if (!sender.post(IBV_WR_SEND, 0, 100, 0, 0) ||
      !sender.post(IBV_WR_RDMA_WRITE, 8192, 100000, placement_stage->rkey, 8192))
    return failed("not posted");
  usleep(300000);
  if (reached()[8192] != 1) failed("a Write has overtaken a Send");
  if (!order(Order::kReceive)) return failed("no receive");
  expect(sender.complete(), IBV_WC_SUCCESS, "the Send");
  expect(sender.complete(), IBV_WC_SUCCESS, "the Write");
  if (reached()[0] != 5 || reached()[8192] != 5 || reached()[108191] != 5) failed("wrong bytes");
  if (!await_placement(sender)) return failed("nothing is placed afterwards");
}

constexpr size_t kMinFetched = 8192;
constexpr size_t kSendSizes[] = {1, kMinFetched - 1, kMinFetched, 65541, 1024 * 1024, 3 * 1024 * 1024 + 7};

void send_all_sizes(PlacementEnd& sender, bool fetches) {
  for (const size_t size : kSendSizes) {
    for (const size_t offset : {size_t{0}, size_t{13}}) {
      const uint64_t before = fetched();
      fill(sender.buffer + offset, size, size + offset);
      memset(reached(), 0, size + 1);
      if (!order(Order::kReceiveAll)) return failed("no receive");
      expect(sender.transfer(IBV_WR_SEND, offset, static_cast<uint32_t>(size)), IBV_WC_SUCCESS, "a Send");
      if (memcmp(reached(), sender.buffer + offset, size) != 0) failed("a Send", "wrong bytes");
      if (reached()[size] != 0) failed("a Send", "a byte behind it");
      const bool is_fetched = fetched() > before;
      if (is_fetched != (fetches && size >= kMinFetched)) failed("a Send", is_fetched ? "fetched" : "not fetched");
    }
  }
}

void sends(PlacementEnd& sender) {
  if (!await_fetch(sender)) return failed("nothing is fetched");
  send_all_sizes(sender, true);
}

// Both messages are in the ring before the target goes on.
void two_sends_at_once(PlacementEnd& sender) {
  if (!await_fetch(sender)) return failed("nothing is fetched");
  const uint64_t before = fetched_ahead();
  for (const uint32_t size : {uint32_t{kMinFetched}, 65541u, 512 * 1024u}) {
    fill(sender.buffer, kReached, size);
    memset(reached(), 0, kReached);
    if (!order(Order::kReceiveHalves)) return failed("no receives");
    if (!stop(placement_stage->target)) return failed("not stopped");
    if (!sender.post(IBV_WR_SEND, 0, size, 0, 0) || !sender.post(IBV_WR_SEND, 0, size, 0, size))
      return failed("not posted");
    kill(placement_stage->target, SIGCONT);
    expect(sender.complete(), IBV_WC_SUCCESS, "the first Send");
    expect(sender.complete(), IBV_WC_SUCCESS, "the second Send");
    if (memcmp(reached(), sender.buffer, size) != 0) failed("the first Send", "wrong bytes");
    if (memcmp(reached() + kReached / 2, sender.buffer + size, size) != 0) failed("the second Send", "wrong bytes");
    if (reached()[size] != 0 || reached()[kReached / 2 + size] != 0) failed("two Sends", "a byte behind them");
  }
  if (fetched_ahead() - before != (kFetchesAhead ? 3 : 0)) failed("two Sends", "not fetched at once");
}

void sends_before_receives(PlacementEnd& sender) {
  constexpr uint32_t kSend = 1024 * 1024;
  if (!await_fetch(sender)) return failed("nothing is fetched");
  fill(sender.buffer, kSend, 5);
  memset(reached(), 0, kSend);
  if (!sender.post(IBV_WR_SEND, 0, kSend, 0, 0)) return failed("not posted");
  usleep(100000);
  if (!order(Order::kReceiveAll)) return failed("no receive");
  expect(sender.complete(), IBV_WC_SUCCESS, "a Send before its receive");
  if (memcmp(reached(), sender.buffer, kSend) != 0) failed("a Send before its receive", "wrong bytes");
  if (!await_fetch(sender)) failed("nothing is fetched afterwards");
}

void receive_is_too_short(PlacementEnd& sender) {
  if (!await_fetch(sender)) return failed("nothing is fetched");
  if (!order(Order::kReceive)) return failed("no receive");
  expect(sender.transfer(IBV_WR_SEND, 0, 1024 * 1024), IBV_WC_REM_INV_REQ_ERR, "a Send for a short receive");
}

void not_fetched(PlacementEnd& sender) {
  for (int i = 0; i < 3; i++) send_all_sizes(sender, false);
}

}  // namespace

int main() {
  placement_stage = prepare_stage<PlacementStage>();
  run_placement("all sizes, the target is stopped", target_is_stopped);
  run_placement("a full queue", queue_is_full_of_transfers);
  run_placement("refusals", refused_as_by_the_engine);
  run_placement("a wrong local key", local_key_is_wrong);
  run_placement("a queue pair in error", target_is_in_error, {.timeout = 14});
  run_placement("a Write behind a Send", write_behind_a_send);
  run_placement("Sends of all sizes", sends);
  run_placement("two Sends at once", two_sends_at_once);
  run_placement("Sends before their receives", sends_before_receives);
  run_placement("a receive that is too short", receive_is_too_short);
  run_placement("the sender lends nothing", not_fetched, {.sender_off = "DAPPLE_PLACEMENT"});
  run_placement("the target fetches nothing", not_fetched, {.target_off = "DAPPLE_PLACEMENT"});
  run_placement("the sender places nothing", not_placed, {.sender_off = "DAPPLE_PLACEMENT"});
  run_placement("the target publishes nothing", not_placed, {.target_off = "DAPPLE_PLACEMENT"});
  run_placement("over UDP", not_placed, {.target_off = "DAPPLE_SAME_HOST"});
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
