// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Runs threads one at a time. At each scheduling point a random number decides whether another thread goes on, so a
// seed gives one exact interleaving. Time is simulated: it advances with each point, and to the end of the next sleep
// when no thread can run.
//
// In some runs a few places are slow: a thread that comes there sometimes stops for a moment. So a thread may stay for
// long between two accesses that are neighbours, which happens by chance only once in thousands of runs.
//
// The threads are real ones, with stacks and thread-local variables of their own, and pass a baton.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/random.hpp"
#include "tests/sim/threads/clock.hpp"

namespace dapple::sim {

inline constexpr uint64_t kNever = UINT64_MAX;

class Scheduler {
 public:
  using Body = std::function<void()>;
  using Ready = std::function<bool()>;

  struct Thread {
    std::string name;
    uint32_t process = 0;
    Body body;
    pthread_t handle = {};
    std::atomic<uint32_t> baton{0};
    const char* stack = nullptr;
    size_t stack_size = 0;
    bool ended = false;
    bool waits = false;
    bool is_service = false;  // the world may end while it waits
    const Ready* ready = nullptr;
    uint64_t until = kNever;
    const char* waits_for = "";
    uint64_t steps = 0;
    uint64_t weight = 1;
  };

  // `stuck` is called when all threads wait for ever; it does not return. The calling thread is thread 0.
  Scheduler(uint64_t seed, std::function<void()> stuck);

  // The new thread's number. It begins when it is first selected.
  uint32_t spawn(std::string name, uint32_t process, Body body);
  // Another thread may go on. `place`: of the program, or 0; one in `rarity` of them is slow.
  void point(uint64_t place = 0, uint64_t rarity = 1);
  // Another thread goes on, if one can.
  void yield();
  // Returns when `ready` does, or at the time `until`. True if ready.
  bool wait(const Ready& ready, uint64_t until, const char* what);
  // No thread loses its CPU for longer, in nanoseconds. 0: never.
  void limit_pauses(uint64_t longest) { longest_pause_ = longest; }
  // Returns when all threads but services have ended.
  void await_all();

  bool is_simulated() const { return self_ >= 0; }
  uint32_t self() const { return static_cast<uint32_t>(self_); }
  Thread& thread(uint32_t number) { return *threads_[number]; }
  uint32_t count() const { return static_cast<uint32_t>(threads_.size()); }
  uint64_t now() const { return now_; }
  uint64_t steps() const { return steps_; }
  // A thread's weight is the relative probability that it is selected.
  Random& random() { return random_; }

  static constexpr uint64_t kStep = 20;  // nanoseconds
  static constexpr uint64_t kYield = 300;

 private:
  static void* run(void* thread);
  void end();
  void switch_thread();
  void pause(uint64_t longest);
  bool stops_at(uint64_t place, uint64_t rarity);
  uint32_t select();
  bool can_run(Thread& thread);
  static void pass_to(Thread& thread);
  static void take_baton(Thread& thread);

  static inline thread_local int32_t self_ = -1;

  Random random_;
  const std::function<void()> stuck_;
  uint64_t switches_;     // one in that many points
  uint64_t preemptions_;  // the same
  bool has_slow_places_;
  uint64_t slow_places_;    // selects them
  uint64_t next_stop_ = 0;  // there, at the earliest
  uint64_t longest_pause_ = kNever;
  std::vector<std::unique_ptr<Thread>> threads_;
  uint64_t now_ = 1'000'000'000;
  uint64_t steps_ = 0;
};

}  // namespace dapple::sim
