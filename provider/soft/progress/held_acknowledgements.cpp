// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Node's acknowledgements that wait for the application's answer, or for more messages.
//
// A program that answers each message would cost two system calls: one for the acknowledgement, and one for the answer.
// If it has answered the last messages soon, Node holds the next acknowledgement, and the answer takes it along. "Soon"
// means that the program posts before its second poll in vain. If it does not this time, the second poll sends
// the acknowledgement, and the program must show its habit again.
//
// An acknowledgement that the peer did not ask for is held, too, and for more polls, so that one serves many messages.
//
// A program may stop polling. So Node holds acknowledgements only while the background thread steps aside, because that
// thread looks again within four milliseconds then.
#include <time.h>

#include <algorithm>

#include "provider/common/host_guards.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/progress/context.hpp"
#include "provider/soft/progress/node.hpp"

namespace dapple::soft {
namespace {

using roce::Owes;

constexpr uint8_t kHabit = 8;  // answers in a row
// The poll that sends an acknowledgement that waits for an answer.
constexpr uint32_t kPollsForAnswer = 2;
// Polls that an acknowledgement waits for more messages. They take a microsecond, or 16 ms if the program polls so
// seldom that the background thread hardly steps aside.
constexpr uint32_t kPollsForMore = 16;
constexpr roce::Time kTimeToLeave = 500'000'000;
constexpr timespec kNap = {0, 100'000};

}  // namespace

// Under the locks of receiving and of the queue pair. False if it owes nothing to its peer, or if its acknowledgement
// is held from now on.
bool Node::must_send_now(Qp& qp, Owes owes) {
  switch (owes) {
    case Owes::kNothing:
      return false;
    case Owes::kLaterAcknowledgement:
      return !hold(qp);
    case Owes::kAcknowledgement:
      return !expects_answer(qp) || !hold(qp);
    case Owes::kMore:
      break;
  }
  return true;
}

bool Node::expects_answer(Qp& qp) {
  if (worker_ != Worker::kPoller) return false;
  // The messages of one turn count as one.
  if (const uint32_t turn = polled_turns_.load(std::memory_order_relaxed); qp.acknowledgement_turn != turn) {
    qp.acknowledgement_turn = turn;
    qp.answers_in_a_row = qp.answered ? static_cast<uint8_t>(std::min<int>(qp.answers_in_a_row + 1, kHabit)) : 0;
    qp.answered = false;
  }
  if (qp.answers_in_a_row < kHabit) return false;
  answer_polls_ = 0;
  return true;
}

bool Node::hold(Qp& qp) {
  const uint32_t count = held_count_.load(std::memory_order_relaxed);
  if (worker_ != Worker::kPoller || qp.dying || count == kMaxHeld) return false;
  if (!steps_aside_.load(std::memory_order_relaxed)) return false;
  if (qp.held) return true;
  if (count == 0) held_polls_ = 0;
  qp.held = true;
  held_[count] = &qp;
  held_count_.store(count + 1, have_heavy_barriers() ? std::memory_order_relaxed : std::memory_order_seq_cst);
  return true;
}

// The application has posted.
void Node::note_answer(Qp& qp) {
  if (polled_turns_.load(std::memory_order_relaxed) - qp.acknowledgement_turn <= 1) qp.answered = true;
}

void Node::settle_posts(Qp& qp) {
  note_answer(qp);
  TurnClock clock;
  settle(qp, clock);
}

// Call it before new packets are received.
void Node::send_held_in_time() {
  ++held_polls_;
  ++answer_polls_;
  if (worker_ != Worker::kPoller || held_polls_ > kPollsForMore) return send_held(Owes::kLaterAcknowledgement);
  if (answer_polls_ == kPollsForAnswer) send_held(Owes::kAcknowledgement);
}

// Call it after a polling thread has received. The background thread may have taken over again meanwhile: then it sees
// held_count_ (take_over() has the counterpart), or this thread sees that it no longer steps aside.
void Node::send_held_alone() {
  light_barrier();
  if (held_count_.load() != 0 && !steps_aside_.load()) send_held(Owes::kLaterAcknowledgement);
}

// Sends the held acknowledgements that are at least as urgent as `least`. A queue pair that owes more has sent them
// already, or waits for its turn to send.
void Node::send_held(Owes least) {
  uint32_t left = 0;
  for (uint32_t i = 0; i < held_count_.load(std::memory_order_relaxed); ++i) {
    Qp& qp = *held_[i];
    bool sent = false;
    {
      const BriefLock lock(qp.mutex);
      const Owes owes = qp.engine->owes();
      qp.held = owes == Owes::kLaterAcknowledgement && owes < least;
      sent = !qp.held && (owes == Owes::kAcknowledgement || owes == Owes::kLaterAcknowledgement);
      if (owes == Owes::kAcknowledgement) qp.answers_in_a_row = 0;
      if (sent) settle(qp, clock_);
    }
    if (qp.held) {
      held_[left++] = &qp;
      continue;
    }
    if (sent) deliver(qp);
  }
  held_count_.store(left, std::memory_order_relaxed);
}

void Node::leave() {
  if (held_count_.load() == 0) return;
  const CancelGuard whole;
  // A handler of a signal may have called exit() within a verb, and this thread has the verb's locks. So the background
  // thread sends, and if it needs one of these locks, the acknowledgements stay unsent.
  expect_no_polls();
  for (const roce::Time end = now() + kTimeToLeave; held_count_.load() != 0 && now() < end;) nanosleep(&kNap, nullptr);
}

}  // namespace dapple::soft
