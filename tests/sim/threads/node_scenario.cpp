// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two processes with open devices, which exchange messages: threads that poll, wait for events, or compute between
// polls, and the background threads of both.
#include <cstdlib>
#include <iterator>

#include "tests/sim/threads/programs.hpp"
#include "tests/sim/threads/scenarios.hpp"

namespace dapple::sim {
namespace {

constexpr uint32_t kMaxPairs = 2;
constexpr uint64_t kLongestStop = 20 * kMicrosecond;
constexpr uint64_t kLongestDelay = 60 * kMicrosecond;
constexpr uint64_t kGap = 20 * kMicrosecond;

// How a thread waits for completions.
enum class Style { kPolls, kWaits, kComputes };

class Thread {
 public:
  explicit Thread(const End& end)
      : end_(end), endpoint_({.message = end.size, .receives = end.is_late ? 0 : Endpoint::kDepth}) {}

  void run() {
    peer_ = connect(end_, endpoint_);
    while (sent_ < end_.sends || completed_ < end_.sends || received_ < end_.receives) {
      // A thread that polls may be the first to see the peer's ring.
      if (!are_connected(end_)) {
        if (!take() && sim_host()->below(4) == 0) sim_kernel()->yield();
        continue;
      }
      post();
      if (end_.is_late && posted_ == received_) {
        rest(sim_host()->below(kLongestDelay));
        endpoint_.post_receive(posted_++);
      }
      if (take()) continue;
      select_style();
      wait();
    }
    if (const char* reason = refused_right(); reason != nullptr) sim_host()->fail("the peer may not copy: %s", reason);
  }

 private:
  // The n-th Write.
  static size_t size_of_write(uint32_t n) {
    constexpr size_t kSizes[] = {16, 520, 64, 16, 8200, 64, 16};
    return kSizes[n % std::size(kSizes)];
  }
  static std::byte byte_of_write(uint32_t n) { return static_cast<std::byte>(1 + n); }

  void select_style() {
    if (end_.polled_receives != UINT32_MAX) {
      style_ = received_ < end_.polled_receives ? Style::kPolls : Style::kWaits;
    } else if (sim_host()->below(6) == 0) {
      style_ = static_cast<Style>(sim_host()->below(3));
    }
  }

  void post() {
    while (sent_ < end_.sends && sent_ - completed_ < end_.window && (!end_.answers || sent_ < received_)) {
      sim_host()->note("sends message %u", sent_);
      if (end_.writes) endpoint_.post_write(peer_, sent_, size_of_write(sent_), byte_of_write(sent_));
      endpoint_.post_send(sent_ % Endpoint::kDepth, sent_);
      sent_++;
      if (end_.longest_gap != 0) rest(sim_host()->below(end_.longest_gap));
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
    if (end_.writes) check_write(received_);
    received_++;
    if (!end_.is_late) endpoint_.post_receive(done.slot);
    return true;
  }

  void check_write(uint32_t n) const {
    const std::byte* bytes = endpoint_.written(n);
    for (size_t i = 0; i < size_of_write(n); i++)
      if (bytes[i] != byte_of_write(n)) sim_host()->fail("message %u comes before the Write in front of it", n);
  }

  void wait() {
    switch (style_) {
      case Style::kPolls:
        return;
      case Style::kComputes:
        return rest(sim_host()->below(400 * kMicrosecond));
      case Style::kWaits:
        endpoint_.arm();
        if (!take()) endpoint_.await_event();
    }
  }

  const End& end_;
  Endpoint endpoint_;
  Endpoint::Target peer_ = {};
  Style style_ = static_cast<Style>(sim_host()->below(3));
  uint32_t sent_ = 0, completed_ = 0, received_ = 0;
  uint32_t posted_ = 0;  // late receives
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

// A Write before each message. The peer's table comes meanwhile.
void run_writes(size_t) {
  const auto window = 1 + static_cast<uint32_t>(sim_host()->below(4));
  uint32_t messages[2];
  for (uint32_t& each : messages) each = 1 + static_cast<uint32_t>(sim_host()->below(Endpoint::kWrites));
  for (int process = 0; process < 2; process++)
    ends[0][process] = {.process = process,
                        .sends = messages[process],
                        .receives = messages[1 - process],
                        .window = window,
                        .writes = true};
  start(1);
}

// Messages that come before their receives. The sender tries again later.
void run_late_receives(size_t) {
  const auto messages = 2 + static_cast<uint32_t>(sim_host()->below(8));
  ends[0][0] = {.process = 0, .sends = messages};
  ends[0][1] = {.process = 1, .receives = messages, .is_late = true};
  start(1);
}

// A thread that polls while the peer's ring comes, and then waits for its packets. Without placement this thread sends
// nothing, so only the ring's mark can wake its background thread: there is no deadline, and no answer of the peer.
void run_new_ring(size_t has_placement) {
  if (has_placement == 0) setenv("DAPPLE_PLACEMENT", "off", 1);
  const auto answers = static_cast<uint32_t>(has_placement);
  const auto messages = 1 + static_cast<uint32_t>(sim_host()->below(6));
  const auto polled = static_cast<uint32_t>(sim_host()->below(messages));
  ends[0][0] = {.process = 0,
                .sends = messages,
                .receives = answers,
                .window = 4,
                .polled_receives = 0,
                .longest_gap = kGap,
                .longest_delay = kLongestDelay};
  ends[0][1] = {.process = 1, .sends = answers, .receives = messages, .answers = true, .polled_receives = polled};
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

// Programs that measure times. No other program takes their CPUs for long.
void run_timed(End::Program program, size_t size, uint64_t longest_pause) {
  sim_host()->limit_pauses(longest_pause);
  for (int process = 0; process < 2; process++)
    ends[0][process] = {.program = program, .process = process, .size = size};
  start(1);
}
void run_seldom(size_t) {
  run_timed(End::Program::kSeldomPolls, 16, 0);
}
void run_room(size_t) {
  run_timed(End::Program::kRoom, 4000, kLongestStop);
}
void run_end_of_polls(size_t) {
  run_timed(End::Program::kEndOfPolls, 16, kLongestStop);
}

// Numbers by which the threads meet.
enum : uint32_t { kQueuePair = 100, kConnected = 200, kAddress = 300, kKey = 400 };
uint32_t of_end(uint32_t what, int process, uint32_t pair) {
  return what + pair * 2 + static_cast<uint32_t>(process);
}

}  // namespace

Endpoint::Target connect(const End& end, Endpoint& endpoint) {
  const Endpoint::Target own = endpoint.target();
  sim_host()->set(of_end(kAddress, end.process, end.pair), own.address);
  sim_host()->set(of_end(kKey, end.process, end.pair), own.key);
  sim_host()->set(of_end(kQueuePair, end.process, end.pair), endpoint.number());
  const int other = 1 - end.process;
  sim_host()->await(of_end(kQueuePair, other, end.pair), 1);
  if (end.longest_delay != 0) rest(sim_host()->below(end.longest_delay));
  endpoint.connect(static_cast<uint32_t>(sim_host()->get(of_end(kQueuePair, other, end.pair))));
  sim_host()->add(kConnected + end.pair, 1);
  return {sim_host()->get(of_end(kAddress, other, end.pair)),
          static_cast<uint32_t>(sim_host()->get(of_end(kKey, other, end.pair)))};
}

bool are_connected(const End& end) {
  return sim_host()->get(kConnected + end.pair) == 2;
}

void await_connection(const End& end) {
  sim_host()->await(kConnected + end.pair, 2);
}

void run_program(void* argument) {
  const End& end = *static_cast<End*>(argument);
  switch (end.program) {
    case End::Program::kMessages:
      return Thread(end).run();
    case End::Program::kSeldomPolls:
      return poll_seldom(end);
    case End::Program::kRoom:
      return wait_for_room(end);
    case End::Program::kEndOfPolls:
      return stop_to_poll(end);
  }
}

std::vector<Scenario> node_scenarios() {
  return {{"messages", Scenario::Kind::kRules, run_messages, 0},
          {"new-ring", Scenario::Kind::kRules, run_new_ring, 1},
          {"new-ring-alone", Scenario::Kind::kRules, run_new_ring, 0},
          {"full-rings", Scenario::Kind::kRules, run_full, 0},
          {"writes", Scenario::Kind::kRules, run_writes, 0},
          {"late-receives", Scenario::Kind::kRules, run_late_receives, 0},
          {"room", Scenario::Kind::kRules, run_room, 0},
          {"end-of-polls", Scenario::Kind::kRules, run_end_of_polls, 0},
          {"seldom-polls", Scenario::Kind::kRules, run_seldom, 0}};
}

}  // namespace dapple::sim
