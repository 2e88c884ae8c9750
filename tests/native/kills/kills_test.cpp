// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// kill -9 of random members and of dappled under traffic. The others see the errors that verbs documents, none hangs,
// and nothing is left. DAPPLE_KILLS is the number of kills; 15 by default. With the argument "placed" most of the
// traffic are Writes and Reads that the sender copies itself. Runs under dapple-run.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "tests/native/counter.hpp"
#include "tests/native/kills/member.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kPairs = 6;
constexpr double kPatience = 60;  // seconds; retries take two on an idle machine

struct Process {
  pid_t id = 0;         // 0: it has ended
  bool killed = false;  // killed by this test
  uint64_t seen = 0;    // completions
  double moved = 0;     // when the number last grew
};

struct Pair {
  Process ends[2];
  double first_death = 0;  // 0: both live
};

struct Shared {
  std::atomic<bool> stop{false};
  MemberNews news[kPairs][2];
};

struct Figures {
  uint32_t members_killed = 0, dappleds_killed = 0, pairs = 0, broken = 0, never_met = 0;
  uint32_t retries_exceeded = 0, flushed = 0;
  uint64_t completions = 0;
  double longest_end = 0;  // from a member's death to its peer's end
};

Shared* shared;
Traffic traffic = Traffic::kMixed;
Pair pairs[kPairs];
Figures figures;
Watcher watcher;

void start(uint32_t number) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return failed("socketpair");
  Pair& pair = pairs[number];
  pair = {};
  for (int i = 0; i < 2; i++) {
    MemberNews* news = new (&shared->news[number][i]) MemberNews;
    pair.ends[i].moved = now();
    pair.ends[i].id = start_process([&] {
      close(sockets[1 - i]);
      return live(sockets[i], traffic, *news, shared->stop);
    });
  }
  close(sockets[0]);
  close(sockets[1]);
  figures.pairs++;
}

// Handles the end of a member, for whatever reason.
void ended(uint32_t number, int end, int status) {
  Pair& pair = pairs[number];
  Process& process = pair.ends[end];
  const MemberNews& news = shared->news[number][end];
  process.id = 0;
  figures.completions += news.completions;
  figures.retries_exceeded += news.retries_exceeded;
  figures.flushed += news.flushed;
  const double time = now();
  char text[64];
  if (WIFSIGNALED(status)) {
    snprintf(text, sizeof text, "signal %d", WTERMSIG(status));
    if (!process.killed || WTERMSIG(status) != SIGKILL) failed("a member ended", text);
  } else if (WEXITSTATUS(status) == kFailed) {
    failed("a member", news.problem);
  } else if (WEXITSTATUS(status) == kBroken || WEXITSTATUS(status) == kPeerGone) {
    (WEXITSTATUS(status) == kBroken ? figures.broken : figures.never_met)++;
    if (pair.first_death == 0 && !shared->stop) failed("a connection broke although both ends lived");
    if (pair.first_death != 0) figures.longest_end = std::max(figures.longest_end, time - pair.first_death);
  } else if (WEXITSTATUS(status) != kStopped || !shared->stop) {
    snprintf(text, sizeof text, "exit code %d", WEXITSTATUS(status));
    failed("a member ended", text);
  }
  if (pair.first_death == 0) pair.first_death = time;
}

void reap() {
  int status;
  for (pid_t id; (id = waitpid(-1, &status, WNOHANG)) > 0;) {
    // The other children are dappleds: this process inherits them after the death of the process that started them.
    for (uint32_t i = 0; i < kPairs; i++) {
      for (int end = 0; end < 2; end++) {
        if (pairs[i].ends[end].id == id) ended(i, end, status);
      }
    }
  }
}

// Kills members that hang.
void look_after(uint32_t number) {
  Pair& pair = pairs[number];
  const double time = now();
  for (int end = 0; end < 2; end++) {
    Process& process = pair.ends[end];
    if (process.id == 0) continue;
    const uint64_t completions = shared->news[number][end].completions;
    if (completions != process.seen) process.moved = time;
    process.seen = completions;
    const double since =
        pair.first_death != 0 || shared->stop ? std::max(pair.first_death, process.moved) : process.moved;
    if (process.killed || time - since < kPatience) continue;
    failed(pair.first_death != 0 ? "a member does not notice that its peer is dead" : "a connection stands still",
           shared->news[number][end].problem);
    kill(process.id, SIGKILL);
    process.killed = true;
  }
}

bool has_traffic(uint32_t number) {
  return pairs[number].first_death == 0 && shared->news[number][0].completions > 50 &&
         shared->news[number][1].completions > 50;
}

// any: includes a member that has just started, or whose peer is dead; otherwise only one whose peer lives and must
// notice.
bool kill_member(uint32_t random, bool any) {
  for (uint32_t i = 0; i < 2 * kPairs; i++) {
    const uint32_t chosen = (random + i) % (2 * kPairs);
    Pair& pair = pairs[chosen / 2];
    Process& process = pair.ends[chosen % 2];
    if (process.id == 0 || process.killed || (!any && !has_traffic(chosen / 2))) continue;
    process.killed = true;
    kill(process.id, SIGKILL);
    if (pair.first_death == 0) pair.first_death = now();
    figures.members_killed++;
    return true;
  }
  return false;
}

uint32_t living() {
  uint32_t count = 0;
  for (const Pair& pair : pairs) count += (pair.ends[0].id != 0 ? 1U : 0U) + (pair.ends[1].id != 0 ? 1U : 0U);
  return count;
}

void tend() {
  reap();
  for (uint32_t i = 0; i < kPairs; i++) {
    look_after(i);
    if (pairs[i].ends[0].id == 0 && pairs[i].ends[1].id == 0 && !shared->stop) start(i);
  }
}

// Waits until all is quiet: two members for each pair, and as many slots.
void settle() {
  soft::StatusReply status;
  for (const double end = now() + kPatience; now() < end; usleep(20000)) {
    tend();
    bool whole = true;
    for (uint32_t i = 0; i < kPairs; i++) {
      for (int end_of = 0; end_of < 2; end_of++) {
        whole = whole && pairs[i].first_death == 0 && shared->news[i][end_of].completions > 100;
      }
    }
    if (whole && watcher.status(status) && status.slots_in_use == 2 * kPairs)
      return watcher.measure(static_cast<pid_t>(status.process));
  }
  char text[64];
  snprintf(text, sizeof text, "%u members, %u slots in use", living(), status.slots_in_use);
  failed("the members that live have not come to rest", text);
}

// Packets have gone by shared memory, or over UDP if the environment says so.
void expect_transport() {
  soft::StatusReply status;
  const bool off = getenv("DAPPLE_SAME_HOST") != nullptr;
  if (!watcher.status(status)) return failed("dappled does not tell its status");
  if (off != (counter(status, "same_host_sent_packets") == 0)) failed("the packets have not gone the expected way");
  if (!off && counter(status, "same_host_broken") != 0) failed("a ring was broken");
  // Some thousand, even if the machine is slow.
  if (traffic == Traffic::kPlaced && counter(status, "placed_writes") < 100) failed("few Writes went without packets");
}

void finish() {
  settle();
  expect_transport();
  shared->stop = true;
  watcher.close();
  if (!await(
          2 * kPatience, [] { return living() == 0; }, tend))
    failed("members do not end");
  expect_nothing_left();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "placed") == 0) traffic = Traffic::kPlaced;
  const unsigned long kills = number_from("DAPPLE_KILLS", 15);
  shared = prepare_stage<Shared>();
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  auto seed = static_cast<unsigned>(number_from("DAPPLE_KILLS_SEED", static_cast<unsigned long>(time.tv_nsec)));
  printf("%lu kills, seed %u\n", kills, seed);
  fflush(stdout);
  const double begin = now();
  double told = begin;
  uint32_t kind = 9;  // two of ten: dappled; one: any member
  for (uint32_t i = 0; i < kPairs; i++) start(i);
  while (figures.members_killed + figures.dappleds_killed < kills && failures() < 10) {
    const auto number = static_cast<uint32_t>(rand_r(&seed));
    usleep(number % 40000);
    tend();
    const bool killed = kind < 2 ? watcher.kill_dappled() : kill_member(number, kind == 2);
    if (killed && kind < 2) figures.dappleds_killed++;
    if (killed) kind = static_cast<uint32_t>(rand_r(&seed)) % 10;
    if (now() - told > 10) {
      told = now();
      printf("%u members and %u dappleds killed\n", figures.members_killed, figures.dappleds_killed);
      fflush(stdout);
    }
  }
  finish();
  printf("%u members and %u dappleds killed in %.1f s; %u pairs, %llu successful completions\n", figures.members_killed,
         figures.dappleds_killed, now() - begin, figures.pairs, static_cast<unsigned long long>(figures.completions));
  printf("%u survivors: %u retries exceeded, %u flushed; %u had not met their peer; the slowest ended after %.1f s\n",
         figures.broken, figures.retries_exceeded, figures.flushed, figures.never_met, figures.longest_end);
  if (!watcher.report()) failed("dappled takes too much memory, or has too many descriptors");
  return failures() == 0 ? 0 : 1;
}
