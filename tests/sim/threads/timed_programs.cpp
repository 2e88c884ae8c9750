// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Programs that measure how long their messages take.
#include "tests/sim/threads/host.hpp"
#include "tests/sim/threads/programs.hpp"

namespace dapple::sim {
namespace {

// Numbers by which the threads meet.
enum : uint32_t { kOver = 500, kReceived = 501, kWaits = 502 };

// A program of two processes. The first one sends to the second one.
class OneWay {
 public:
  void run() {
    connect(end_, endpoint_);
    await_connection(end_);
    if (end_.process == 0) {
      send();
    } else {
      receive();
    }
  }

 protected:
  OneWay(const End& end, const Endpoint::Options& options) : end_(end), endpoint_(options) {}
  ~OneWay() = default;
  virtual void send() = 0;
  virtual void receive() = 0;

  const End& end_;
  Endpoint endpoint_;
};

// The second process receives while it polls, and then while it computes and rarely polls. Its background thread must
// notice this, and take the packets itself: the first process gets its acknowledgements soon.
class Seldom final : public OneWay {
 public:
  static constexpr uint32_t kStream = 24, kSingle = 24, kMaxSlow = 4;
  static constexpr uint64_t kPause = 1500 * kMicrosecond, kOften = 15 * kMicrosecond, kSoon = 400 * kMicrosecond;

  explicit Seldom(const End& end) : OneWay(end, {.message = end.size}) {}

 private:
  // Returns the time from the post to the acknowledgement.
  uint64_t send_one(uint32_t number) {
    const uint64_t start = sim_host()->now();
    endpoint_.post_send(number % Endpoint::kDepth, number);
    while (!endpoint_.poll().any) {
    }
    return sim_host()->now() - start;
  }

  void send() override {
    uint32_t slow = 0;
    // Long enough for the background thread to step aside for long.
    for (uint32_t i = 0; i < kStream; i++) {
      rest(500 * kMicrosecond);
      send_one(i);
    }
    for (uint32_t i = 0; i < kSingle; i++) {
      rest(sim_host()->below(2 * kPause));
      const uint64_t took = send_one(kStream + i);
      sim_host()->note("message %u took %lu ns", kStream + i, took);
      // The first ones show the background thread that the other thread has stopped to poll often.
      if (i >= kSingle / 2 && took > kSoon) slow++;
    }
    sim_host()->set(kOver, 1);
    if (slow > kMaxSlow)
      sim_host()->fail("%u of %u messages wait for a thread that rarely polls", slow, kSingle - kSingle / 2);
  }

  void receive() override {
    for (uint32_t received = 0; received < kStream + kSingle && sim_host()->get(kOver) == 0;) {
      const Endpoint::Completion done = endpoint_.poll();
      if (done.any) {
        received++;
        endpoint_.post_receive(done.slot);
      }
      rest(received < kStream ? kOften : kPause);
    }
  }
};

// The first process posts more than a ring has room for, and then stops to poll, for a time or until an event comes.
// Its background thread must notice the room, and send the rest: the second process, which polls all the time, gets the
// messages soon.
//
// The queue pairs are unreliable, so there are no acknowledgements, which would wake the background thread, too.
class Room final : public OneWay {
 public:
  static constexpr uint32_t kMessages = 168, kMaxUnread = 56;  // fewer than there are receives
  static constexpr uint64_t kMaxPolls = 20, kPause = 4000 * kMicrosecond, kSoon = 1500 * kMicrosecond;

  explicit Room(const End& end) : OneWay(end, {.message = end.size, .type = IBV_QPT_UC}) {}

 private:
  void send() override {
    uint32_t sent = 0, completed = 0;
    while (completed < kMessages) {
      while (sent < kMessages && sent - sim_host()->get(kReceived) < kMaxUnread) {
        endpoint_.post_send(sent % Endpoint::kDepth, sent);
        sent++;
      }
      for (uint64_t polls = 1 + sim_host()->below(kMaxPolls); polls > 0; polls--) completed += endpoint_.poll().any;
      if (completed == sent) continue;
      if (sim_host()->below(2) == 0) {
        rest(kPause);
        continue;
      }
      endpoint_.arm();
      const bool any = endpoint_.poll().any;
      completed += any;
      if (!any) endpoint_.await_event();
    }
  }

  void receive() override {
    uint64_t last = sim_host()->now();
    for (uint32_t received = 0; received < kMessages;) {
      const Endpoint::Completion done = endpoint_.poll();
      const uint64_t now = sim_host()->now();
      // The other process posts the next messages when it has seen these.
      const bool is_due = received % kMaxUnread != 0;
      if (is_due && now - last > kSoon) sim_host()->fail("message %u waits although there is room", received);
      if (!done.any) continue;
      if (endpoint_.received(done.slot) != received) sim_host()->fail("message %u does not come in order", received);
      sim_host()->note("receives message %u", received);
      endpoint_.post_receive(done.slot);
      last = now;
      received++;
      if (received % kMaxUnread == 0) sim_host()->set(kReceived, received);
    }
  }
};

// The second process polls for so long that its background thread steps aside for long. Then it waits for an event: the
// background thread must take over.
class EndOfPolls final : public OneWay {
 public:
  static constexpr uint32_t kRounds = 4, kStream = 20;
  static constexpr uint64_t kMaxPolls = 20, kOften = 40 * kMicrosecond, kSoon = 250 * kMicrosecond;
  static constexpr uint64_t kBetweenMessages = 300 * kMicrosecond;

  explicit EndOfPolls(const End& end) : OneWay(end, {.message = end.size}) {}

 private:
  void send() override {
    uint32_t sent = 0;
    for (uint32_t round = 0; round < kRounds; round++) {
      for (uint32_t i = 0; i < kStream; i++) {
        rest(kBetweenMessages);
        send_one(sent++);
      }
      sim_host()->await(kWaits, round + 1);
      rest(sim_host()->below(kBetweenMessages));
      send_one(sent++);
    }
  }

  void send_one(uint32_t number) {
    endpoint_.post_send(number % Endpoint::kDepth, sim_host()->now());
    while (!endpoint_.poll().any) rest(kOften);
  }

  void receive() override {
    for (uint32_t round = 0; round < kRounds; round++) {
      uint64_t time = 0;
      for (uint32_t received = 0; received < kStream; received += take(time)) rest(kOften);
      for (uint64_t polls = sim_host()->below(kMaxPolls); polls > 0; polls--) {
        take(time);
        rest(kOften);
      }
      endpoint_.arm();
      take(time);
      sim_host()->set(kWaits, round + 1);
      endpoint_.await_event();
      const uint64_t now = sim_host()->now();
      if (!take(time)) sim_host()->fail("an event comes without a message");
      if (now - time > kSoon) sim_host()->fail("a message waits for %lu ns, and nobody polls", now - time);
    }
  }

  // The message has the time at which it was sent.
  bool take(uint64_t& time) {
    const Endpoint::Completion done = endpoint_.poll();
    if (!done.any) return false;
    time = endpoint_.received(done.slot);
    endpoint_.post_receive(done.slot);
    return true;
  }
};

}  // namespace

void poll_seldom(const End& end) {
  Seldom(end).run();
}

void wait_for_room(const End& end) {
  Room(end).run();
}

void stop_to_poll(const End& end) {
  EndOfPolls(end).run();
}

}  // namespace dapple::sim
