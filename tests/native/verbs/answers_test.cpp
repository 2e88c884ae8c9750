// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program that answers each message sends the acknowledgement along with its answer. When an answer does not come,
// the acknowledgement goes anyway: the program sleeps, destroys its queue pair, or ends. A program also ends if it
// calls exit() in a handler that has interrupted a post. Runs under dapple-run.
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <thread>

#include "tests/native/counter.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/verbs/two_processes.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint64_t kTogether = 500;  // acknowledgements that are to go along
constexpr uint8_t kAckTimeout = 20;  // 4.3 s: an acknowledgement that is not sent is noticed
constexpr uint32_t kMessageSize = 8;

enum class Last : uint32_t { kSleeps, kDestroys, kExits, kExitsInAPost };
constexpr const char* kLastNames[] = {"it sleeps", "it destroys its queue pair", "it exits", "it exits in a post"};
// A lock favours the first thread that takes it often, and that thread could take the lock twice. In kExitsInAPost the
// posting thread must not be the favoured one, so another thread answers the first messages.
constexpr uint64_t kOfAnotherThread = 300;  // messages

struct Shared {
  Meeting meeting;
  std::atomic<bool> last{false};  // the next message is not answered
  std::atomic<bool> over{false};
};

Shared* shared;
Watcher watcher;

// One process' end of the connection.
struct Talker {
  End end;
  uint64_t sent = 0, received = 0;

  bool open(int number) {
    return open_end(end, shared->meeting, number, kAckTimeout, kMessageSize) && receive() && meet(shared->meeting);
  }
  bool receive() { return post_receive(end, 1, 0, kMessageSize) == 0; }
  bool send() { return post_send(end, 2, IBV_WR_SEND, 0, kMessageSize) == 0; }
  // Polls once. False if something failed.
  bool poll() {
    ibv_wc completion = {};
    const int got = ibv_poll_cq(end.cq, 1, &completion);
    if (got == 1) (completion.opcode == IBV_WC_RECV ? received : sent)++;
    return got == 0 || (got == 1 && completion.status == IBV_WC_SUCCESS);
  }
  // Until a message has come, and until all messages are acknowledged if so wanted.
  bool wait(uint64_t wanted_received, uint64_t wanted_sent) {
    const double end_of_wait = now() + kPatience;
    while (received < wanted_received || sent < wanted_sent) {
      if (!poll() || now() > end_of_wait) return false;
    }
    return true;
  }
};

// Posts inline bytes that cannot be read.
void post_hidden_bytes(Talker& talker, const void* hidden) {
  ibv_sge piece = {reinterpret_cast<uintptr_t>(hidden), kMessageSize, 0};
  ibv_send_wr request = {}, *bad = nullptr;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  ibv_post_send(talker.end.qp, &request, &bad);
}

// Answers until so many messages have come, or the last. 0, or an exit code.
int answer(Talker& talker, uint64_t& messages, uint64_t most) {
  while (messages < most) {
    if (!talker.wait(++messages, 0)) return 2;
    if (shared->last) return 0;
    if (!talker.receive() || !talker.send()) return 3;
  }
  return 0;
}

int answer(Last last) {
  const auto talker = std::make_unique<Talker>();
  if (!talker->open(1)) return 1;
  uint64_t messages = 0;
  int code = 0;
  void* hidden = nullptr;
  if (last == Last::kExitsInAPost) {
    signal(SIGSEGV, [](int) { exit(0); });
    hidden = mmap(nullptr, kMessageSize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::thread([&] { code = answer(*talker, messages, kOfAnotherThread); }).join();
  }
  if (code == 0) code = answer(*talker, messages, UINT64_MAX);
  if (code != 0) return code;
  if (last == Last::kExitsInAPost) post_hidden_bytes(*talker, hidden);
  if (last == Last::kExits) exit(0);
  if (last == Last::kDestroys && ibv_destroy_qp(talker->end.qp) != 0) return 4;
  return await(kPatience, [] { return shared->over.load(); }) ? 0 : 5;
}

// The number of packets that went along with others until now.
bool count_together(uint64_t& together) {
  soft::StatusReply status;
  if (!watcher.status(status)) return false;
  together = counter(status, "sent_packets") - counter(status, "sent_batches");
  return true;
}

// Talks until enough acknowledgements have gone along with messages.
bool ask_until_enough(Talker& talker, uint64_t& messages) {
  uint64_t before = 0, together = 0;
  if (!count_together(before)) return false;
  for (const double end = now() + kPatience; now() < end;) {
    for (int i = 0; i < 200; i++) {
      messages++;
      if (!talker.send() || !talker.wait(messages, messages) || !talker.receive()) return false;
    }
    if (!count_together(together)) return false;
    if (together >= before + kTogether) return true;
  }
  return false;
}

void talk(Last last) {
  const char* name = kLastNames[static_cast<int>(last)];
  shared->meeting.qpn[0] = shared->meeting.qpn[1] = 0;
  shared->meeting.ready = 0;
  shared->last = shared->over = false;
  const pid_t answerer = start_process([&] { return answer(last); });
  const auto talker = std::make_unique<Talker>();
  uint64_t messages = 0;
  if (!talker->open(0)) {
    failed("no connection", name);
  } else if (!ask_until_enough(*talker, messages) || !ask_until_enough(*talker, messages)) {
    failed("acknowledgements do not go along with answers", name);
  } else {
    shared->last = true;
    const uint64_t acknowledged = messages + (last == Last::kExitsInAPost ? 0 : 1);
    if (!talker->send() || !talker->wait(messages, acknowledged)) failed("the last message is not acknowledged", name);
  }
  shared->over = true;
  if (!ends_with(answerer, 0)) failed("the answering program", name);
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  for (const Last last : {Last::kSleeps, Last::kDestroys, Last::kExits, Last::kExitsInAPost, Last::kExitsInAPost,
                          Last::kExitsInAPost, Last::kExitsInAPost}) {
    // Each in a process of its own, so that all of it ends.
    if (!ends_with(start_process([&] {
                     talk(last);
                     soft::StatusReply status;
                     if (!watcher.status(status)) failed("dappled does not answer");
                     if (counter(status, "timeouts") != 0) failed("an acknowledgement came late");
                     return failures() == 0 ? 0 : 1;
                   }),
                   0))
      failed(kLastNames[static_cast<int>(last)]);
  }
  expect_nothing_left();
  return failures() == 0 ? 0 : 1;
}
