// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled is stopped while a thread asks it. Messages still wake a thread that waits for events, and when dappled goes
// on, the program connects to it again without a further question. Later questions of several threads fail as soon as
// the first did. Runs under dapple-run.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/native/clock.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

// Less than the time for which a question waits, and than the next attempt to connect.
constexpr int kMaxDelay = 6000;             // ms
constexpr double kAfterwards = 4;           // seconds
constexpr double kMaxOfAQuestion = 25;      // seconds: at most two attempts of another thread to connect
constexpr int kOthers = 4;                  // threads
constexpr useconds_t kBetween = 5000;       // µs
constexpr useconds_t kNoticed = 1'000'000;  // µs; dappled has seen what happened while it was stopped

Pair* pair = nullptr;

bool exchange(uint64_t id) {
  ibv_wc completion = {};
  ibv_cq* cq = nullptr;
  void* argument = nullptr;
  if (post_receive(pair->b, id, 0, 8) != 0 || ibv_req_notify_cq(pair->b.cq, 0) != 0) return false;
  if (post_send(pair->a, id, IBV_WR_SEND, 0, 8) != 0) return false;
  // No thread polls.
  pollfd waiting = {pair->channel->fd, POLLIN, 0};
  if (poll(&waiting, 1, kMaxDelay) != 1 || ibv_get_cq_event(pair->channel, &cq, &argument) != 0) return false;
  ibv_ack_cq_events(cq, 1);
  return ibv_poll_cq(cq, 1, &completion) == 1 && completion.wr_id == id && wait_for(pair->a.cq, completion) &&
         completion.status == IBV_WC_SUCCESS;
}

void run() {
  Watcher watcher;
  soft::StatusReply before, after;
  pair = make_pair({.channel = true});
  if (pair == nullptr) return failed("no pair");
  if (!exchange(1) || !watcher.status(before)) return failed("no message, or no dappled");
  const auto dappled = static_cast<pid_t>(before.process);
  kill(dappled, SIGSTOP);
  std::atomic<int> answer{-1}, wrong_answers{0};
  std::thread asker([&] {
    ibv_port_attr attr;
    answer = ibv_query_port(pair->context, 1, &attr);
  });
  uint64_t id = 1;
  double end = 0;
  while (end == 0 || now() < end) {
    if (!exchange(++id)) {
      failed(answer == -1 ? "a message while a thread asks" : "a message after the question");
      break;
    }
    if (answer != -1 && end == 0) end = now() + kAfterwards;
    usleep(kBetween);
  }
  asker.join();
  const double begin = now();
  std::vector<std::thread> others;
  for (int i = 0; i < kOthers; i++) {
    others.emplace_back([&] {
      ibv_port_attr attr;
      if (ibv_query_port(pair->context, 1, &attr) != ETIMEDOUT) wrong_answers++;
    });
  }
  for (std::thread& other : others) other.join();
  if (wrong_answers != 0 || now() - begin > kMaxOfAQuestion) failed("later questions");
  kill(dappled, SIGCONT);
  if (end != 0 && answer != ETIMEDOUT) failed("the question", strerror(answer));
  usleep(kNoticed);
  if (!await(kPatience, [&] { return watcher.status(after) && after.members == before.members; })) {
    failed("the program does not connect again");
  }
  if (after.process != before.process) failed("dappled has ended");
  delete pair;
}

}  // namespace

int main() {
  need_new_namespace();
  run();
  return failures() == 0 ? 0 : 1;
}
