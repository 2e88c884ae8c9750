// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/scheduling/turn_clock.hpp"

namespace dapple::soft {

// A thread's turn with the engine of one queue pair. The turn takes the queue pair's lock, and the thread calls the
// engine. At its end the turn sends the engine's packets, takes over its state and its deadline, releases the lock, and
// tells the application of completions and events.
//
// Make it without a queue pair's lock. The queue pair must be pinned or the caller's own.
class EngineTurn {
 public:
  // The parts of the end that are due.
  enum class End : uint8_t {
    kSend,   // all: after packets and deadlines
    kPost,   // all: after requests of the application
    kState,  // all, but before RTS there is nothing to send: after a change of the state
    kKeep,   // all but sending
    kTell,   // only after the lock: the engine has nothing new to send
    kWake,   // only to wake the background thread: there is nothing to tell either
  };

  EngineTurn(Engines& engines, Qp& qp, End end) : after_lock_{engines, qp, end}, lock_(qp.mutex), clock_(own_clock_) {}
  // With the time of the caller's turn of work.
  EngineTurn(Engines& engines, Qp& qp, TurnClock& clock, End end)
      : after_lock_{engines, qp, end}, lock_(qp.mutex), clock_(clock) {}
  EngineTurn(const EngineTurn&) = delete;
  EngineTurn& operator=(const EngineTurn&) = delete;
  ~EngineTurn() { finish(); }

  void ends_by(End end) { after_lock_.end = end; }
  // Sends and takes over the state now: only kTell is left for the end.
  void finish_engine() {
    finish();
    ends_by(End::kTell);
  }

 private:
  void finish() {
    Engines& engines = after_lock_.engines;
    Qp& qp = after_lock_.qp;
    assert_held(qp.mutex);
    switch (after_lock_.end) {
      case End::kPost:
        engines.held.note_answer(qp.held);
        [[fallthrough]];
      case End::kSend:
        return engines.take_state(qp, engines.send_packets(qp, clock_));
      case End::kState:
        return engines.take_state(qp, qp.engine->state() > roce::QpState::kRtr && engines.send_packets(qp, clock_));
      case End::kKeep:
        return engines.take_state(qp, false);
      case End::kTell:
      case End::kWake:
        return;
    }
  }

  // Members end in reverse order: first the lock, then this.
  struct AfterLock {
    Engines& engines;
    Qp& qp;
    End end;
    ~AfterLock() {
      if (end == End::kWake) {
        engines.wake_if_due();
      } else {
        engines.tell_program(qp);
      }
    }
  } after_lock_;
  const BiasedLock lock_;
  TurnClock own_clock_;
  TurnClock& clock_;
};

}  // namespace dapple::soft
