// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The marks by which the threads of the program and the background thread hand the work to each other.
//
// Each pair of functions below follows one pattern: one thread stores x and loads y, the other stores y and loads x,
// and at least one of them sees the other's store. So either the thread of the program wakes the background thread, or
// the background thread sees by itself that there is work.
//
// No lock and no system call, except for the heavy barrier. Any thread may call a function unless it says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/scheduling/standby.hpp"
#include "roce/host/clock.hpp"

namespace dapple::soft {

class Handover {
 public:
  using Time = roce::Time;

  // A polling thread has found the lock taken.
  void count_poll() { polls_.fetch_add(1, std::memory_order_relaxed); }
  // A polling thread that has the lock. A poll of another thread may get lost in the count.
  void begin_poll() {
    count_polls(1);
    poller_works_.store(true, std::memory_order_relaxed);
  }
  void end_poll() { poller_works_.store(false, std::memory_order_relaxed); }
  void count_polls(uint32_t polls) {
    polls_.store(polls_.load(std::memory_order_relaxed) + polls, std::memory_order_relaxed);
  }

  // The program is about to wait for an event. True: wake the background thread, which stepped aside. Counterpart:
  // step_aside().
  [[nodiscard]] bool expect_no_polls() {
    last_poll_.store(polls_.load(std::memory_order_relaxed));
    return steps_aside_.load() && steps_aside_.exchange(false);
  }

  // A queue pair has become the earliest of all; Timers has published the deadline. Counterpart: plan_wake().
  void note_deadline(Time earliest) {
    if (earliest < planned_wake_.load()) note_wake();
  }
  // A queue pair waits for a turn; Ready has published it. If the background thread steps aside, a polling thread looks
  // itself, or the background thread does after take_over(), the counterpart.
  void note_ready() {
    if (!steps_aside_.load()) note_wake();
  }
  // After the locks. True: wake the background thread.
  [[nodiscard]] bool take_wake() {
    return wake_due_.load(std::memory_order_relaxed) && wake_due_.exchange(false, std::memory_order_acquire);
  }

  // A hint, for a thread that checks again after its store (HeldAcknowledgements).
  bool may_step_aside() const { return steps_aside_.load(std::memory_order_relaxed); }
  bool steps_aside() const { return steps_aside_.load(); }

  // The background thread. It looks at Timers::earliest() once more after plan_wake().
  void plan_wake(Time when) { planned_wake_.store(when); }
  Standby::Marks marks() const {
    return {polls(), last_poll_.load(std::memory_order_relaxed), poller_works_.load(std::memory_order_relaxed)};
  }
  uint32_t polls() const { return polls_.load(std::memory_order_relaxed); }
  // The marks for Standby::marked().
  Standby::Marks step_aside() {
    Standby::Marks marks;
    marks.polls = polls();
    was_aside_ = true;
    steps_aside_.store(true);
    marks.last_poll = last_poll_.load();
    return marks;
  }
  // A polling thread that holds an acknowledgement back sees that this thread no longer steps aside, or this thread
  // sees the acknowledgement.
  void take_over() {
    steps_aside_.store(false);
    if (std::exchange(was_aside_, false) && have_heavy_barriers()) heavy_barrier();
  }

 private:
  // Another thread may take the wake. It passes on what this thread has published, to the background thread that it
  // wakes. An exchange also keeps what a third thread has published before.
  void note_wake() { wake_due_.exchange(true, std::memory_order_release); }

  std::atomic<uint32_t> polls_{0};
  std::atomic<uint32_t> last_poll_{0};  // polls_ at the last expect_no_polls()
  std::atomic<bool> poller_works_{false};
  std::atomic<bool> steps_aside_{false};  // the background thread ignores packets
  std::atomic<Time> planned_wake_{0};     // when the background thread wakes by itself
  std::atomic<bool> wake_due_{false};
  bool was_aside_ = false;  // the background thread's own: since it took over last
};

}  // namespace dapple::soft
