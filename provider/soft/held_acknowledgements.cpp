// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Node's acknowledgements that wait for the application's answer.
//
// A program that answers each message would cost two system calls: one for the acknowledgement, and one for the answer.
// If it has answered the last messages soon, Node holds the next acknowledgement, and the answer takes it along. "Soon"
// means that the program posts before its second poll in vain. If it does not this time, the second poll sends
// the acknowledgement, and the program must show its habit again.
//
// A program may stop polling. So Node holds acknowledgements only while the background thread steps aside, because that
// thread looks again within four milliseconds then.
#include <time.h>

#include <algorithm>

#include "provider/soft/context.hpp"
#include "provider/soft/node.hpp"
#include "provider/soft/undisturbed.hpp"

namespace dapple::soft {
namespace {

using roce::Owes;

constexpr uint8_t kHabit = 8;  // answers in a row
constexpr roce::Time kTimeToLeave = 500'000'000;
constexpr timespec kNap = {0, 100'000};

}  // namespace

// Under the locks of receiving and of the queue pair, which owes an acknowledgement and nothing else.
bool Node::holds_acknowledgement(Qp& qp) {
  if (worker_ != Worker::kPoller || qp.dying) return false;
  qp.answers_in_a_row = qp.answered ? static_cast<uint8_t>(std::min<int>(qp.answers_in_a_row + 1, kHabit)) : 0;
  qp.answered = false;
  qp.acknowledgement_poll = polls_.load(std::memory_order_relaxed);
  if (qp.answers_in_a_row < kHabit || held_count_.load(std::memory_order_relaxed) == kMostHeld) return false;
  if (!steps_aside_.load(std::memory_order_relaxed)) return false;
  held_polled_ = false;
  if (qp.held) return true;
  qp.held = true;
  QpTable::pin(qp);
  held_[held_count_.load(std::memory_order_relaxed)] = &qp;
  held_count_.fetch_add(1);
  return true;
}

// The application has posted.
void Node::note_answer(Qp& qp) {
  if (polls_.load(std::memory_order_relaxed) - qp.acknowledgement_poll <= 1) qp.answered = true;
}

void Node::settle_posts(Qp& qp) {
  note_answer(qp);
  TurnClock clock;
  settle(qp, clock);
}

// Call it before new packets are received.
void Node::send_held_in_time() {
  if (worker_ == Worker::kPoller && !held_polled_) {
    held_polled_ = true;
  } else {
    send_held();
  }
}

// Call it after a polling thread has received. The background thread may have taken over again meanwhile: then it sees
// held_count_, or this thread sees that it no longer steps aside.
void Node::send_held_alone() {
  if (held_count_.load() != 0 && !steps_aside_.load()) send_held();
}

void Node::send_held() {
  for (uint32_t i = 0; i < held_count_.load(std::memory_order_relaxed); ++i) {
    Qp& qp = *held_[i];
    bool sent = false;
    {
      const std::lock_guard lock(qp.mutex);
      qp.held = false;
      sent = qp.engine->owes() == Owes::kAcknowledgement;
      if (sent) {
        qp.answers_in_a_row = 0;
        settle(qp, clock_);
      }
    }
    if (sent) deliver(qp);
    QpTable::unpin(qp);
  }
  held_count_.store(0, std::memory_order_relaxed);
}

void Node::leave() {
  if (held_count_.load() == 0) return;
  const Undisturbed undisturbed;
  // A handler of a signal may have called exit() within a verb, and this thread has the verb's locks. So the background
  // thread sends, and if it needs one of these locks, the acknowledgements stay unsent.
  expect_no_polls();
  for (const roce::Time end = now() + kTimeToLeave; held_count_.load() != 0 && now() < end;) nanosleep(&kNap, nullptr);
}

}  // namespace dapple::soft
