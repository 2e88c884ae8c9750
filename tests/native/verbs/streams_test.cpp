// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program that sends a stream of short messages over a ring, most of them without a completion, so that one
// acknowledgement may serve many: each completion comes, and in order. The last messages have no completion; they are
// acknowledged before a timer ends, although the receiver does not poll any more. The number of packets depends on how
// quick the two ends are, so it is only printed. Runs under dapple-run.
#include <infiniband/verbs.h>
#include <stdio.h>
#include <time.h>

#include <atomic>
#include <memory>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/two_processes.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

// A busy machine may stop the receiver, but not for so long.
constexpr uint8_t kAckTimeout = 20;  // 4.3 s
constexpr timespec kMoreThanTwoTimeouts = {9, 0};
constexpr uint64_t kMessages = 20'000;
constexpr uint64_t kSignaled = 32;  // one message of so many has a completion
constexpr uint64_t kInFlight = 24;  // less than half of the queue
constexpr uint64_t kLast = 5;       // messages at the end, none with a completion
constexpr uint32_t kSize = 8;

struct Shared {
  Meeting meeting;
  std::atomic<uint64_t> received{0};
  std::atomic<bool> over{false};
};

Shared* shared;

bool open(End& end, int number) {
  if (!open_end(end, shared->meeting, number, kAckTimeout)) return false;
  for (uint32_t i = 0; number == 1 && i < kDepth; i++) {
    if (post_receive(end, i, 0, kSize) != 0) return false;
  }
  return meet(shared->meeting);
}

int receive_all() {
  const auto end = std::make_unique<End>();
  if (!open(*end, 1)) return 1;
  for (const double last = now() + kPatience; shared->received < kMessages + kLast;) {
    ibv_wc completions[16];
    const int got = ibv_poll_cq(end->cq, 16, completions);
    if (got < 0 || now() > last) return 2;
    for (int i = 0; i < got; i++) {
      if (completions[i].status != IBV_WC_SUCCESS || post_receive(*end, 0, 0, kSize) != 0) return 3;
    }
    shared->received += static_cast<uint64_t>(got);
  }
  return await(kPatience, [] { return shared->over.load(); }) ? 0 : 4;
}

bool send(End& end, uint64_t number, bool signaled) {
  return post_send(end, number, IBV_WR_SEND, 0, kSize, nullptr, 0, signaled ? IBV_SEND_SIGNALED : 0) == 0;
}

// The receiver never lacks a receive, because no more than kInFlight messages wait for it.
bool send_all(End& end) {
  const double last = now() + kPatience;
  for (uint64_t sent = 0, completed = 0; completed < kMessages;) {
    if (sent < kMessages && sent - completed < kDepth && sent - shared->received < kInFlight) {
      sent++;
      if (!send(end, sent, sent % kSignaled == 0)) return false;
    }
    ibv_wc completion;
    const int got = ibv_poll_cq(end.cq, 1, &completion);
    if (got < 0 || (got == 1 && completion.status != IBV_WC_SUCCESS) || now() > last) return false;
    if (got == 1 && completion.wr_id != (completed += kSignaled)) return false;
  }
  for (uint64_t i = 0; i < kLast; i++) {
    if (!send(end, 0, false)) return false;
  }
  return await(kPatience, [] { return shared->received == kMessages + kLast; });
}

// 0, or the number of failures.
int send_and_count() {
  const auto end = std::make_unique<End>();
  Watcher watcher;
  soft::StatusReply before, status;
  if (!open(*end, 0) || !watcher.status(before)) {
    failed("no connection");
  } else if (!send_all(*end)) {
    failed("a message or its completion is missing");
  } else {
    nanosleep(&kMoreThanTwoTimeouts, nullptr);
    if (!watcher.status(status)) failed("dappled does not answer");
    const uint64_t packets = counter(status, "same_host_sent_packets") - counter(before, "same_host_sent_packets");
    printf("%llu packets for %llu messages\n", static_cast<unsigned long long>(packets),
           static_cast<unsigned long long>(kMessages + kLast));
    if (packets < kMessages + kLast) failed("the messages have not gone by the ring");
    if (counter(status, "timeouts") != 0) failed("the last messages were not acknowledged in time");
  }
  shared->over = true;
  fflush(stdout);
  return static_cast<int>(failures());
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  return run_ends(receive_all, send_and_count);
}
