// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The pairs of functions by which threads of the program and the background thread hand work to each other. Both call
// their parts at about the same time. Then at least one of them knows of the work: the background thread sees it, or a
// thread of the program wakes it. Nothing looks again later, so work that nobody knows of keeps a thread asleep.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <iterator>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/scheduling/handover.hpp"
#include "provider/soft/scheduling/held_acknowledgements.hpp"
#include "provider/soft/scheduling/ready.hpp"
#include "provider/soft/scheduling/timers.hpp"
#include "tests/sim/threads/process.hpp"
#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

using namespace dapple::soft;

constexpr uint32_t kRounds = 6;
constexpr uint64_t kLongestDelay = 300;  // nanoseconds, before a thread begins its part of a round
constexpr roce::Time kDeadline = 1000;

struct Holder {
  QpHeld held;
};

// Each round has its own marks.
struct Round {
  Handover handover;
  Timers timers;
  Ready ready;
  HeldAcknowledgements<Holder> held{handover};
  Qp qp;
  Holder holder;
  const int event = eventfd(0, 0);
};

struct Pair;

struct World {
  const Pair* pair;
  uint32_t threads;
  Round rounds[kRounds];
};
World* world;

void wait_for(int event) {
  pollfd waiting = {event, POLLIN, 0};
  poll(&waiting, 1, -1);
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(event, &count, sizeof count);
}

void wake(const Round& round) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(round.event, &one, sizeof one);
}

// One pair of functions. A thread calls its function once in each round.
struct Pair {
  const char* name;
  void (*prepare)(Round& round);
  void (*program)(Round& round);
  void (*other_program)(Round& round);  // a second thread of the program, or null
  void (*background)(Round& round);
};

// --- The end of polls

void expect_no_polls(Round& round) {
  if (round.handover.expect_no_polls()) wake(round);
}
// A thread that steps aside although the program waits would leave packets alone.
void step_aside(Round& round) {
  if (round.handover.step_aside().last_poll != 1) wait_for(round.event);
}

// --- Deadlines

void schedule(Round& round) {
  {
    const BiasedLock lock(round.qp.mutex);
    if (round.timers.schedule(round.qp, kDeadline)) round.handover.note_deadline(round.timers.earliest());
  }
  if (round.handover.take_wake()) wake(round);
}
void take_wake(Round& round) {
  if (round.handover.take_wake()) wake(round);
}
void sleep_until_deadline(Round& round) {
  for (;;) {
    round.handover.plan_wake(roce::kNever);
    if (round.timers.earliest() == kDeadline) return;
    wait_for(round.event);
  }
}

// --- Turns

void add_ready(Round& round) {
  {
    const BiasedLock lock(round.qp.mutex);
    if (round.ready.add(round.qp)) round.handover.note_ready();
  }
  if (round.handover.take_wake()) wake(round);
}
void sleep_until_ready(Round& round) {
  round.handover.take_over();
  while (!round.ready.any()) wait_for(round.event);
}

// --- Held acknowledgements

void hold(Round& round) {
  round.held.begin_pass(Worker::kPoller);
  const bool goes = round.held.must_send_now(round.holder, roce::Owes::kLaterAcknowledgement, true);
  if (goes || round.held.must_not_wait()) wake(round);
}
void sleep_until_held(Round& round) {
  round.handover.take_over();
  if (!round.held.any()) wait_for(round.event);
}

constexpr auto kStepAside = [](Round& round) { round.handover.step_aside(); };

constexpr Pair kPairs[] = {
    {"handover-events", [](Round& round) { round.handover.count_poll(); }, expect_no_polls, nullptr, step_aside},
    {"handover-deadlines", [](Round& round) { round.timers.make_room(); }, schedule, take_wake, sleep_until_deadline},
    {"handover-turns", kStepAside, add_ready, take_wake, sleep_until_ready},
    {"handover-acknowledgements", kStepAside, hold, nullptr, sleep_until_held},
};

void run_rounds(void (*part)(Round& round)) {
  for (uint32_t i = 0; i < kRounds; i++) {
    sim_host()->add(i, 1);
    sim_host()->await(i, world->threads);
    rest(sim_host()->below(kLongestDelay));
    part(world->rounds[i]);
  }
}

void run_pair(size_t number) {
  prepare_heavy_barriers();
  world =
      new World{.pair = &kPairs[number], .threads = kPairs[number].other_program != nullptr ? 3U : 2U, .rounds = {}};
  for (Round& round : world->rounds) world->pair->prepare(round);
  sim_host()->spawn(
      "program", 0, [](void*) { run_rounds(world->pair->program); }, nullptr);
  if (world->pair->other_program != nullptr)
    sim_host()->spawn(
        "other", 0, [](void*) { run_rounds(world->pair->other_program); }, nullptr);
  sim_host()->spawn(
      "background", 0, [](void*) { run_rounds(world->pair->background); }, nullptr);
  sim_host()->await_all();
}

}  // namespace

std::vector<Scenario> handover_scenarios() {
  std::vector<Scenario> all;
  for (size_t i = 0; i < std::size(kPairs); i++) all.push_back({kPairs[i].name, Scenario::Kind::kRules, run_pair, i});
  return all;
}

}  // namespace dapple::sim
