// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes with open devices, which exchange messages: threads that poll, wait for events, or compute between
// polls, and the background threads of both.
#include <time.h>

#include <new>

#include "tests/sim/threads/process.hpp"
#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

constexpr uint32_t kMaxPairs = 2;
constexpr uint64_t kMicrosecond = 1000;

// How a thread waits for completions.
enum class Style { kPolls, kWaits, kComputes };

// Numbers by which the threads meet.
uint32_t number_of_queue_pair(int process, uint32_t pair) {
  return 100 + pair * 2 + static_cast<uint32_t>(process);
}
uint32_t connected(uint32_t pair) {
  return 200 + pair;
}

// One end of a pair of queue pairs, and its thread. The processes share this plain data.
struct End {
  int process = 0;
  uint32_t pair = 0;
  uint32_t sends = 0, receives = 0;  // in all
  uint32_t window = 1;               // Sends under way
  bool answers = false;              // each Send answers a receive
  size_t size = 16;
  bool only_waits = false;  // for events, once the peer is connected
  bool seldom = false;      // class Seldom
};

void connect(const End& end, Endpoint& endpoint) {
  sim_host()->set(number_of_queue_pair(end.process, end.pair), endpoint.number());
  sim_host()->await(number_of_queue_pair(1 - end.process, end.pair), 1);
  endpoint.connect(static_cast<uint32_t>(sim_host()->get(number_of_queue_pair(1 - end.process, end.pair))));
  sim_host()->add(connected(end.pair), 1);
}

// From now on both queue pairs receive.
bool are_connected(const End& end) {
  return sim_host()->get(connected(end.pair)) == 2;
}

class Thread {
 public:
  explicit Thread(const End& end) : end_(end), endpoint_(end.size) {}

  void run() {
    connect(end_, endpoint_);
    while (sent_ < end_.sends || completed_ < end_.sends || received_ < end_.receives) {
      // A thread that polls may be the first to see the peer's ring.
      if (!are_connected(end_)) {
        if (!take()) sim_kernel()->yield();
        continue;
      }
      post();
      if (take()) continue;
      if (end_.only_waits) {
        style_ = Style::kWaits;
      } else if (sim_host()->below(6) == 0) {
        style_ = static_cast<Style>(sim_host()->below(3));
      }
      wait();
    }
  }

 private:
  void post() {
    while (sent_ < end_.sends && sent_ - completed_ < end_.window && (!end_.answers || sent_ < received_)) {
      sim_host()->note("sends message %u", sent_);
      endpoint_.post_send(sent_ % Endpoint::kDepth, sent_);
      sent_++;
    }
  }

  bool take() {
    const Endpoint::Completion done = endpoint_.poll();
    if (!done.any) return false;
    if (!done.is_receive) {
      if (done.slot != completed_ % Endpoint::kDepth) sim_host()->fail("a Send completes out of order, or twice");
      completed_++;
      return true;
    }
    const uint64_t number = endpoint_.received(done.slot);
    if (number != received_) sim_host()->fail("message %lu comes instead of message %u", number, received_);
    sim_host()->note("receives message %u", received_);
    received_++;
    endpoint_.post_receive(done.slot);
    return true;
  }

  void wait() {
    switch (style_) {
      case Style::kPolls:
        return;
      case Style::kComputes: {
        const timespec time = {0, static_cast<long>(sim_host()->below(400 * kMicrosecond))};
        nanosleep(&time, nullptr);
        return;
      }
      case Style::kWaits:
        endpoint_.arm();
        if (!take()) endpoint_.await_event();
    }
  }

  const End& end_;
  Endpoint endpoint_;
  Style style_ = static_cast<Style>(sim_host()->below(3));
  uint32_t sent_ = 0, completed_ = 0, received_ = 0;
};

// The second process receives while it polls, and then while it computes and rarely polls. Its background thread must
// notice this, and take the packets itself: the first process gets its acknowledgements soon.
class Seldom {
 public:
  static constexpr uint32_t kStream = 24, kSingle = 24, kMaxSlow = 4;
  static constexpr uint64_t kPause = 1500 * kMicrosecond, kOften = 15 * kMicrosecond, kSoon = 400 * kMicrosecond;

  explicit Seldom(const End& end) : end_(end), endpoint_(end.size) {}

  void run() {
    connect(end_, endpoint_);
    sim_host()->await(connected(end_.pair), 2);
    if (end_.process == 0) {
      send();
    } else {
      receive();
    }
  }

 private:
  static constexpr uint32_t kOver = 300;

  // Returns the time from the post to the acknowledgement.
  uint64_t send_one(uint32_t number) {
    const uint64_t start = sim_host()->now();
    endpoint_.post_send(number % Endpoint::kDepth, number);
    while (!endpoint_.poll().any) {
    }
    return sim_host()->now() - start;
  }

  void send() {
    uint32_t slow = 0;
    // Long enough for the background thread to step aside for long.
    for (uint32_t i = 0; i < kStream; i++) {
      const timespec pause = {0, 500 * kMicrosecond};
      nanosleep(&pause, nullptr);
      send_one(i);
    }
    for (uint32_t i = 0; i < kSingle; i++) {
      const timespec pause = {0, static_cast<long>(sim_host()->below(2 * kPause))};
      nanosleep(&pause, nullptr);
      const uint64_t took = send_one(kStream + i);
      sim_host()->note("message %u took %lu ns", kStream + i, took);
      // The first ones show the background thread that the other thread has stopped to poll often.
      if (i >= kSingle / 2 && took > kSoon) slow++;
    }
    sim_host()->set(kOver, 1);
    if (slow > kMaxSlow)
      sim_host()->fail("%u of %u messages wait for a thread that rarely polls", slow, kSingle - kSingle / 2);
  }

  void receive() {
    for (uint32_t received = 0; received < kStream + kSingle && sim_host()->get(kOver) == 0;) {
      const Endpoint::Completion done = endpoint_.poll();
      if (done.any) {
        received++;
        endpoint_.post_receive(done.slot);
      }
      const timespec pause = {0, static_cast<long>(received < kStream ? kOften : kPause)};
      nanosleep(&pause, nullptr);
    }
  }

  const End& end_;
  Endpoint endpoint_;
};

End ends[kMaxPairs][2];

// The programs of both processes. `peer` runs those of the second one.
void start(uint32_t pairs) {
  for (uint32_t pair = 0; pair < pairs; pair++) {
    for (int process = 0; process < 2; process++) {
      const char* const names[][2] = {{"A0", "B0"}, {"A1", "B1"}};
      const Module* module = process == 0 ? sim_module() : sim_module()->peer;
      sim_host()->spawn(names[pair][process], process, module->run_program, &ends[pair][process]);
    }
  }
  sim_host()->await_all();
}

void run_messages(size_t) {
  const auto pairs = 1 + static_cast<uint32_t>(sim_host()->below(kMaxPairs));
  for (uint32_t pair = 0; pair < pairs; pair++) {
    const bool answers = sim_host()->below(2) == 0;
    const auto window = 1 + static_cast<uint32_t>(sim_host()->below(8));
    uint32_t messages[2];
    for (uint32_t& each : messages) each = 1 + static_cast<uint32_t>(sim_host()->below(12));
    if (answers) messages[1] = messages[0];
    for (int process = 0; process < 2; process++)
      ends[pair][process] = {.process = process,
                             .pair = pair,
                             .sends = messages[process],
                             .receives = messages[1 - process],
                             .window = window,
                             .answers = answers && process == 1};
  }
  start(pairs);
}

// A thread that polls while the peer's ring comes, and then waits for its packets.
void run_new_ring(size_t) {
  for (int process = 0; process < 2; process++)
    ends[0][process] = {.process = process, .sends = 1, .receives = 1, .answers = process == 1, .only_waits = true};
  start(1);
}

// Long messages, of which the ring has no room for all that are posted.
void run_full(size_t) {
  const auto window = 36 + static_cast<uint32_t>(sim_host()->below(20));
  const uint32_t messages[] = {window + static_cast<uint32_t>(sim_host()->below(30)),
                               static_cast<uint32_t>(sim_host()->below(4))};
  for (int process = 0; process < 2; process++)
    ends[0][process] = {.process = process,
                        .sends = messages[process],
                        .receives = messages[1 - process],
                        .window = window,
                        .size = 4000};
  start(1);
}

void run_seldom(size_t) {
  sim_host()->never_preempt();
  for (int process = 0; process < 2; process++) ends[0][process] = {.process = process, .seldom = true};
  start(1);
}

}  // namespace

void run_program(void* argument) {
  const End& end = *static_cast<End*>(argument);
  if (end.seldom) {
    Seldom(end).run();
  } else {
    Thread(end).run();
  }
}

std::vector<Scenario> node_scenarios() {
  return {{"messages", Scenario::Kind::kRules, run_messages, 0},
          {"new-ring", Scenario::Kind::kRules, run_new_ring, 0},
          {"full-rings", Scenario::Kind::kRules, run_full, 0},
          {"seldom-polls", Scenario::Kind::kRules, run_seldom, 0}};
}

}  // namespace dapple::sim
