// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// kill -9 of random programs of rdma_cm and of dappled while connections are made and ended. The others see events and
// errors that rdma_cm documents, none hangs, and nothing is left, not even in dappled. DAPPLE_KILLS is the number of
// kills; 30 by default. Runs under dapple-run.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "roce/cm/exponent.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/rdma_cm/party.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kServers = 2;
constexpr uint32_t kParties = 6;
constexpr uint16_t kFirstPort = 7180;
constexpr double kPatience = 60;  // seconds
// Seconds for which dappled remembers a connection whose programs were both killed between REP and RTU, at most.
constexpr double kMemory = double{16 * roce::cm::kMaxWaitForPeer + roce::cm::kMaxHold} / 1e9;
constexpr uint32_t kMaxPauseMs = 100;

struct Process {
  pid_t id = 0;  // 0: it has ended
  bool killed = false;
  uint64_t steps = 0;
  double moved = 0;
};

struct Shared {
  PartyOrders orders;
  PartyNews news[kParties];
};

struct Figures {
  uint32_t parties_killed = 0, dappleds_killed = 0, started = 0;
  uint64_t done = 0, broken = 0;
  uint32_t events[kEventKinds] = {}, errors[kErrnos] = {};
  uint32_t slowest_ms = 0;
};

Shared* shared;
Process processes[kParties];
Figures figures;
Watcher watcher;

bool is_server(uint32_t number) {
  return number < kServers;
}

void start(uint32_t number) {
  PartyNews* news = new (&shared->news[number]) PartyNews;
  PartyOptions options;
  options.port = static_cast<uint16_t>(kFirstPort + number % kServers);
  options.calm = false;
  options.most_pause_ms = kMaxPauseMs;
  options.reject_one_in = 16;
  processes[number] = {};
  processes[number].moved = now();
  processes[number].id = start_process(
      [&] { return is_server(number) ? serve(options, *news, shared->orders) : call(options, *news, shared->orders); });
  figures.started++;
}

void ended(uint32_t number, int status) {
  Process& process = processes[number];
  const PartyNews& news = shared->news[number];
  process.id = 0;
  figures.done += news.done;
  figures.broken += news.broken;
  figures.slowest_ms = std::max<uint32_t>(figures.slowest_ms, news.slowest_ms);
  for (uint32_t i = 0; i < kEventKinds; i++) figures.events[i] += news.events[i];
  for (uint32_t i = 0; i < kErrnos; i++) figures.errors[i] += news.calls_failed[i];
  const bool killed = process.killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const bool stopped = shared->orders.stop && WIFEXITED(status) && WEXITSTATUS(status) == kPartyStopped;
  if (killed || stopped) return;
  char text[240];
  snprintf(text, sizeof text, "status %#x %s", status, news.problem);
  failed(is_server(number) ? "a server ended" : "a client ended", text);
}

void tend() {
  int status;
  for (pid_t id; (id = waitpid(-1, &status, WNOHANG)) > 0;) {
    // The other children are dappleds: this process inherits them after the death of the process that started them.
    for (uint32_t i = 0; i < kParties; i++) {
      if (processes[i].id == id) ended(i, status);
    }
  }
  const double time = now();
  for (uint32_t i = 0; i < kParties; i++) {
    Process& process = processes[i];
    if (process.id == 0) {
      if (!shared->orders.stop) start(i);
      continue;
    }
    const uint64_t steps = shared->news[i].steps;
    if (steps != process.steps || is_server(i)) process.moved = time;
    process.steps = steps;
    if (process.killed || shared->orders.rest || time - process.moved < kPatience) continue;
    failed("a client gets nowhere", shared->news[i].problem);
    kill(process.id, SIGKILL);
    process.killed = true;
  }
}

bool kill_party(uint32_t random) {
  for (uint32_t i = 0; i < kParties; i++) {
    Process& process = processes[(random + i) % kParties];
    if (process.id == 0 || process.killed) continue;
    process.killed = true;
    kill(process.id, SIGKILL);
    figures.parties_killed++;
    return true;
  }
  return false;
}

// Connections work as if nothing had happened.
void settle() {
  const auto all_have = [](uint64_t more, const uint64_t* before) {
    for (uint32_t i = kServers; i < kParties; i++) {
      if (shared->news[i].done < before[i] + more) return false;
    }
    return true;
  };
  uint64_t done[kParties], broken[kParties];
  const auto note = [&] {
    for (uint32_t i = 0; i < kParties; i++) {
      done[i] = shared->news[i].done;
      broken[i] = shared->news[i].broken;
    }
  };
  note();
  if (!await(
          kPatience, [&] { return all_have(10, done); }, tend))
    return failed("clients do not connect any more");
  // The effects of a kill are over by now, except that messages are sent again.
  for (const double end = now() + 6; now() < end; usleep(10000)) tend();
  note();
  if (!await(
          kPatience, [&] { return all_have(20, done); }, tend))
    return failed("clients do not connect after a while");
  for (uint32_t i = kServers; i < kParties; i++) {
    char text[64];
    // One in 16 is rejected.
    const uint64_t more = shared->news[i].broken - broken[i];
    snprintf(text, sizeof text, "%llu beside %llu good ones", static_cast<unsigned long long>(more),
             static_cast<unsigned long long>(shared->news[i].done - done[i]));
    if (more > (shared->news[i].done - done[i]) / 2) failed("connections break though nobody was killed", text);
  }
}

// Only the listeners remain.
void rest() {
  shared->orders.rest = true;
  const bool closed = await(
      kPatience,
      [] {
        for (const PartyNews& news : shared->news) {
          if (news.open != 0) return false;
        }
        return true;
      },
      tend);
  if (!closed) failed("connections do not end");
  soft::StatusReply status;
  const soft::CmStatus& cm = status.connection_management;
  const bool quiet = await(
      kMemory,
      [&] {
        return watcher.status(status) && cm.ids == kServers && cm.connections == 0 && cm.remembered == 0 &&
               cm.channels == kParties && status.slots_in_use <= kParties;
      },
      tend);
  char text[160];
  snprintf(text, sizeof text, "%u channels, %u ids, %u connections, %u remembered, %u slots",
           static_cast<unsigned>(cm.channels), static_cast<unsigned>(cm.ids), static_cast<unsigned>(cm.connections),
           static_cast<unsigned>(cm.remembered), status.slots_in_use);
  if (!quiet) failed("something is left in dappled", text);
  watcher.measure(static_cast<pid_t>(status.process));
}

void finish() {
  settle();
  rest();
  shared->orders.stop = true;
  watcher.close();
  const bool all = await(
      2 * kPatience,
      [] {
        return std::all_of(processes, processes + kParties, [](const Process& process) { return process.id == 0; });
      },
      tend);
  if (!all) failed("parties do not end");
  expect_nothing_left();
}

void print_figures(double seconds) {
  static constexpr const char* kNames[kEventKinds] = {
      "address resolved", "address error",   "route resolved", "route error",  "connect request", "connect response",
      "connect error",    "unreachable",     "rejected",       "established",  "disconnected",    "device removal",
      "multicast join",   "multicast error", "address change", "timewait exit"};
  printf("%u programs and %u dappleds killed in %.1f s; %u programs started\n", figures.parties_killed,
         figures.dappleds_killed, seconds, figures.started);
  printf("connections: %llu good, %llu broken or rejected, counted at both ends; the slowest step took %u ms\n",
         static_cast<unsigned long long>(figures.done), static_cast<unsigned long long>(figures.broken),
         figures.slowest_ms);
  printf("events:");
  for (uint32_t i = 0; i < kEventKinds; i++) {
    if (figures.events[i] != 0) printf(" %u %s,", figures.events[i], kNames[i]);
  }
  printf("\ncalls that failed:");
  for (uint32_t i = 0; i < kErrnos; i++) {
    if (figures.errors[i] != 0) printf(" %u with %s;", figures.errors[i], strerror(static_cast<int>(i)));
  }
  printf("\n");
}

}  // namespace

int main() {
  const unsigned long kills = number_from("DAPPLE_KILLS", 30);
  shared = prepare_stage<Shared>();
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  auto seed = static_cast<unsigned>(number_from("DAPPLE_KILLS_SEED", static_cast<unsigned long>(time.tv_nsec)));
  printf("%lu kills, seed %u\n", kills, seed);
  fflush(stdout);
  const double begin = now();
  double told = begin;
  for (uint32_t i = 0; i < kParties; i++) start(i);
  while (figures.parties_killed + figures.dappleds_killed < kills && failures() < 10) {
    const auto number = static_cast<uint32_t>(rand_r(&seed));
    usleep(number % 60000);
    tend();
    if (number / 60000 % 10 < 2) {
      figures.dappleds_killed += watcher.kill_dappled() ? 1U : 0U;
    } else {
      kill_party(static_cast<uint32_t>(rand_r(&seed)));
    }
    if (now() - told > 10) {
      told = now();
      printf("%u programs and %u dappleds killed\n", figures.parties_killed, figures.dappleds_killed);
      fflush(stdout);
    }
  }
  finish();
  print_figures(now() - begin);
  if (!watcher.report()) failed("dappled takes too much memory, or has too many descriptors");
  return failures() == 0 ? 0 : 1;
}
