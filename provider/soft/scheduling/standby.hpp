// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The policy of the background thread, which makes progress when no thread of the program polls.
//
// A thread that polls takes packets faster than a thread that sleeps, and both on one CPU would hinder each other. So
// if a packet has woken the background thread and is already gone, the next packet makes it check for a moment whether
// a thread polls. If so, it steps aside: it ignores packets for a while, longer each time. It takes over again if no
// thread has polled in between. Without traffic it sleeps.
//
// Pure: it reads no clock, makes no system call and has no atomic. The thread (background.hpp) carries out each step
// and reports what it has seen.
#pragma once

#include <cstdint>

#include "roce/host/clock.hpp"

namespace dapple::soft {

// Confined to one thread.
class Standby {
 public:
  using Time = roce::Time;

  enum class Act : uint8_t {
    kSleep,      // sleep until sleep_end(), or until there are packets: then slept()
    kWatch,      // sleep until `until`, and look at nothing: then watched()
    kMarkAside,  // tell the others that this thread steps aside: then marked()
    kStayAside,  // sleep until `until`, and ignore packets: then stayed_aside()
    kTakeOver,   // tell the others that this thread no longer steps aside: then took_over()
    kLook,       // look at all work, unless another thread has the lock: then looked()
  };
  struct Step {
    Act act = Act::kSleep;
    Time until = 0;
  };

  // The marks that threads of the program leave (handover.hpp).
  struct Marks {
    uint32_t polls = 0;         // so far
    uint32_t last_poll = 0;     // `polls` when the program last said that it would not poll again soon
    bool poller_works = false;  // at this moment
  };
  // The reasons to end a sleep, besides packets.
  struct Reasons {
    Time deadline = roce::kNever;  // the earliest of all queue pairs
    bool holds = false;            // acknowledgements are held
    bool ready = false;            // queue pairs wait for a turn
    bool rings_full = false;       // and their peers wake this process when there is room
  };
  enum class Found : uint8_t {
    kShutOut,  // another thread has the lock
    kNothing,
    kWork,
  };
  struct Look {
    Found found = Found::kNothing;
    Time took = 0;
    bool met_poller = false;  // another thread has polled while this one fetched bytes, perhaps on the same CPU
  };

  Standby() {
    learn(0);
    aside_ = poll_interval_;
  }

  // Before kSleep is carried out.
  Time sleep_end(const Reasons& reasons, Time now) const;
  // packets: they have ended the sleep.
  Step slept(bool packets, const Marks& marks, Time now);
  Step watched(const Marks& marks);
  // marks: `polls` as of before this thread told the others, `last_poll` as of after it.
  Step marked(const Marks& marks, Time now);
  Step stayed_aside(const Marks& marks, Time now);
  Step took_over();
  Step looked(const Look& look);

  // A program that polls often polls at least once in this time.
  Time poll_interval() const { return poll_interval_; }

 private:
  Step enter(Act act, Time until = 0);
  Step end_of_rivalry(bool has_slept);
  Step end_of_looks(bool met_poller);
  void learn(Time took);
  bool has_polled(const Marks& marks, uint32_t polls, Time time) const;
  static bool awaits_event(const Marks& marks);
  bool expects_polls(const Marks& marks) const;

  Act act_ = Act::kSleep;
  Time look_in_vain_ = 0;  // the time that a look takes which finds nothing
  Time poll_interval_ = 0;
  Time aside_ = 0;        // how long this thread steps aside next time
  bool packets_ = false;  // have ended the last sleep
  bool rival_ = false;    // another thread has taken the packets that ended a sleep
  bool shut_out_ = false;
  bool has_slept_ = false;  // aside, since the last sleep for packets
  bool naps_ = false;       // steps aside because it was shut out
  bool found_ = false;      // work, since it took over
  uint32_t polls_ = 0;      // when it began to watch, or to step aside
  uint32_t ended_at_ = 0;   // `polls` when it last watched in vain
  Time began_ = 0;          // to step aside
};

}  // namespace dapple::soft
