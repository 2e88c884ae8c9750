// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Acknowledgements that wait for the application's answer, or for more messages.
//
// A program that answers each message would cost two system calls: one for the acknowledgement, and one for the answer.
// If it has answered the last messages soon, the next acknowledgement is held, and the answer takes it along. "Soon"
// means that the program posts before its second poll in vain. If it does not this time, the second poll sends the
// acknowledgement, and the program must show its habit again.
//
// An acknowledgement that the peer did not ask for is held, too, and for more polls, so that one serves many messages.
//
// A program may stop polling. So acknowledgements are held only while the background thread steps aside, because that
// thread looks again within four milliseconds then.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>

#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/objects/qp_held.hpp"
#include "provider/soft/scheduling/handover.hpp"
#include "roce/core/queue_pair.hpp"

namespace dapple::soft {

// The thread that makes progress: one that polls, or any other.
enum class Worker : uint8_t { kPoller, kOther };

// QueuePair has a member `held`. Guarded by the lock of receiving, except for the atomics.
template <typename QueuePair>
class HeldAcknowledgements {
 public:
  using Owes = roce::Owes;

  explicit HeldAcknowledgements(const Handover& handover) : handover_(handover) {}

  // A pass begins, before it receives packets. Returns the least urgent kind that must not wait any longer: call send()
  // with it; kMore if all may wait.
  Owes begin_pass(Worker worker) {
    worker_ = worker;
    if (worker == Worker::kPoller)
      passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (count_.load(std::memory_order_relaxed) == 0) return Owes::kMore;
    ++polls_;
    ++answer_polls_;
    if (worker != Worker::kPoller || polls_ > kPollsForMore) return Owes::kLaterAcknowledgement;
    return answer_polls_ == kPollsForAnswer ? Owes::kAcknowledgement : Owes::kMore;
  }
  // Of this pass.
  Worker worker() const { return worker_; }
  // By polling threads.
  uint32_t passes() const { return passes_.load(std::memory_order_relaxed); }

  // Also under the queue pair's lock. False if it owes nothing to its peer, or if its acknowledgement is held from now
  // on. may_hold: the queue pair does not end.
  bool must_send_now(QueuePair& qp, Owes owes, bool may_hold) {
    switch (owes) {
      case Owes::kNothing:
        return false;
      case Owes::kLaterAcknowledgement:
        return !hold(qp, may_hold);
      case Owes::kAcknowledgement:
        return !expects_answer(qp.held) || !hold(qp, may_hold);
      case Owes::kMore:
        break;
    }
    return true;
  }

  // Under the queue pair's lock alone: the application has posted.
  void note_answer(QpHeld& held) const {
    if (passes() - held.acknowledgement_pass <= 1) held.answered = true;
  }

  // After a polling thread has received. The background thread may have taken over again meanwhile: then it sees any(),
  // or this thread sees that it no longer steps aside (Handover::take_over()). True: send() all.
  bool must_not_wait() const {
    light_barrier();
    return any() && !handover_.steps_aside();
  }
  // Any thread.
  bool any() const { return count_.load() != 0; }

  // Sends those that are at least as urgent as `least`. send_one(qp, least) locks the queue pair, and calls must_go().
  template <typename SendOne>
  void send(Owes least, SendOne send_one) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
      QueuePair& qp = *listed_[i];
      if (!send_one(qp, least)) listed_[left++] = &qp;
    }
    count_.store(left, std::memory_order_relaxed);
  }
  enum class Verdict : uint8_t { kWaits, kGoes, kGone };
  // Under the queue pair's lock: whether its acknowledgement, of which it still owes `owes`, goes now. A queue pair
  // that owes more has sent it already, or waits for its turn to send.
  static Verdict judge(QpHeld& held, Owes owes, Owes least) {
    if (owes == Owes::kAcknowledgement) held.answers_in_a_row = 0;
    held.listed = owes == Owes::kLaterAcknowledgement && owes < least;
    if (held.listed) return Verdict::kWaits;
    const bool goes = owes == Owes::kAcknowledgement || owes == Owes::kLaterAcknowledgement;
    return goes ? Verdict::kGoes : Verdict::kGone;
  }

 private:
  static constexpr uint32_t kMax = 64;
  static constexpr uint8_t kHabit = 8;  // answers in a row
  // The poll that sends an acknowledgement that waits for an answer.
  static constexpr uint32_t kPollsForAnswer = 2;
  // Polls that an acknowledgement waits for more messages. They take a microsecond, or 16 ms if the program polls so
  // seldom that the background thread hardly steps aside.
  static constexpr uint32_t kPollsForMore = 16;

  bool expects_answer(QpHeld& held) {
    if (worker_ != Worker::kPoller) return false;
    // The messages of one pass count as one.
    if (const uint32_t pass = passes(); held.acknowledgement_pass != pass) {
      held.acknowledgement_pass = pass;
      held.answers_in_a_row =
          held.answered ? static_cast<uint8_t>(std::min<int>(held.answers_in_a_row + 1, kHabit)) : 0;
      held.answered = false;
    }
    if (held.answers_in_a_row < kHabit) return false;
    answer_polls_ = 0;
    return true;
  }

  bool hold(QueuePair& qp, bool may_hold) {
    const uint32_t count = count_.load(std::memory_order_relaxed);
    if (worker_ != Worker::kPoller || !may_hold || count == kMax) return false;
    if (!handover_.may_step_aside()) return false;
    if (qp.held.listed) return true;
    if (count == 0) polls_ = 0;
    qp.held.listed = true;
    listed_[count] = &qp;
    count_.store(count + 1, have_heavy_barriers() ? std::memory_order_relaxed : std::memory_order_seq_cst);
    return true;
  }

  const Handover& handover_;
  Worker worker_ = Worker::kOther;
  QueuePair* listed_[kMax];  // the queue pairs whose acknowledgements are held
  std::atomic<uint32_t> count_{0};
  uint32_t polls_ = 0;               // since the first of them was held
  uint32_t answer_polls_ = 0;        // since an answer was expected last
  std::atomic<uint32_t> passes_{0};  // posting threads read it
};

}  // namespace dapple::soft
