// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The times at which a requester sends again: the acknowledgement timer (IBTA 9.7.6.1.3), and the wait that a peer
// without a receive asks for (RNR NAK). While that wait lasts, the acknowledgement timer does not start.
//
// IBTA leaves the acknowledgement timer between once and four times its value. The first retry comes early, for a lost
// packet; later ones give time to a peer whose system does not run it just now. No clock is read for each
// acknowledgement: the deadline stays, and if it comes, the timer starts again. So it runs for up to twice its value.
#pragma once

#include <algorithm>
#include <cassert>

#include "roce/host/clock.hpp"

namespace dapple::roce {

class RetryTimer {
 public:
  // Neither runs, and no time-out has been.
  void reset() { *this = {}; }

  // Starts the acknowledgement timer if it does not run. kNever: it has no value.
  void start(Now now, Time value) {
    if (deadline_ != kNever || not_ready_ != kNever || value == kNever) return;
    const Time wait = value << patience_;
    was_acknowledged_ = false;
    deadline_ = wait < kLongWait ? now.exact() + wait : now.rough() + kRoughError + wait;
  }
  // It runs from the next start() on.
  void cancel() { deadline_ = kNever; }
  bool runs() const { return deadline_ != kNever; }
  // The peer has answered.
  void acknowledged() {
    was_acknowledged_ = true;
    not_ready_ = kNever;
    if (patience_ > 0) deadline_ = kNever;
    patience_ = 0;
  }

  void wait_for_receiver(Now now, Time wait) {
    deadline_ = kNever;
    not_ready_ = now.exact() + wait;
  }
  bool waits_for_receiver() const { return not_ready_ != kNever; }
  // Ends this wait if its time has come. False if it goes on.
  bool end_wait_for_receiver(Now now) {
    if (not_ready_ == kNever) return true;
    if (now.exact() < not_ready_) return false;
    not_ready_ = kNever;
    return true;
  }

  // `awaits`: a packet has not been acknowledged.
  Time deadline(bool awaits) const { return std::min(awaits ? deadline_ : kNever, not_ready_); }
  bool has_come(Now now) const { return now.exact() >= deadline_; }
  // Clears the deadline that has come, so that it does not come again at once if the wire is full. False if something
  // was acknowledged since the start: then the timer has only to start again.
  bool expire() {
    deadline_ = kNever;
    return !was_acknowledged_;
  }
  // A time-out: the next wait is twice as long.
  void be_patient() {
    if (patience_ < kMaxPatience) patience_++;
  }

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const { assert(patience_ <= kMaxPatience); }

 private:
  // The timer grows to at most four times its value.
  static constexpr uint8_t kMaxPatience = 2;
  // From this time on the rough clock makes the timer late by a third at most.
  static constexpr Time kLongWait = 3 * kRoughError;

  Time deadline_ = kNever;
  Time not_ready_ = kNever;
  uint8_t patience_ = 0;           // time-outs since anything was acknowledged, to a limit
  bool was_acknowledged_ = false;  // something, since the timer was started
};

}  // namespace dapple::roce
