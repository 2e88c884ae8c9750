// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/scheduler.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace dapple::sim {
namespace {

// How often threads take turns; a slow thread is selected less often.
constexpr uint64_t kSwitches[] = {1, 2, 3, 6, 12, 40, 150};
constexpr uint64_t kWeights[] = {1, 4, 4, 16, 16};
// Other programs take a thread's CPU once in that many of its steps. 0: never.
constexpr uint64_t kPreemptions[] = {0, 0, 5000, 1000};
constexpr uint64_t kLongestSlice = 1'000'000;  // nanoseconds
// A thread stops at a slow place once in that many times. The stops of a run have a distance.
constexpr uint64_t kTimesToAStop = 2;
constexpr uint64_t kLongestStop = 50'000;       // nanoseconds
constexpr uint64_t kLongestDistance = 100'000;  // the same

// A new thread runs before it has the baton, and may not look into the scheduler then.
struct Start {
  Scheduler* scheduler;
  Scheduler::Thread* thread;
  uint32_t number;
};

}  // namespace

Scheduler::Scheduler(uint64_t seed, std::function<void()> stuck) : random_(seed), stuck_(std::move(stuck)) {
  switches_ = random_.one_of(kSwitches);
  preemptions_ = random_.one_of(kPreemptions);
  has_slow_places_ = random_.below(2) == 0;
  slow_places_ = random_.next();
  auto first = std::make_unique<Thread>();
  first->name = "main";
  threads_.push_back(std::move(first));
  self_ = 0;
}

uint32_t Scheduler::spawn(std::string name, uint32_t process, Body body) {
  assert(threads_.size() < kMaxThreads);
  const auto number = static_cast<uint32_t>(threads_.size());
  threads_.push_back(std::make_unique<Thread>());
  Thread& made = *threads_.back();
  made.name = std::move(name);
  made.process = process;
  made.body = std::move(body);
  made.weight = random_.one_of(kWeights);
  auto* start = new Start{this, &made, number};
  if (pthread_create(&made.handle, nullptr, run, start) != 0) abort();
  return number;
}

void* Scheduler::run(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  Scheduler& scheduler = *start->scheduler;
  self_ = static_cast<int32_t>(start->number);
  Thread& thread = *start->thread;
  take_baton(thread);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) abort();
  void* stack = nullptr;
  pthread_attr_getstack(&attributes, &stack, &thread.stack_size);
  thread.stack = static_cast<const char*>(stack);
  pthread_attr_destroy(&attributes);
  thread.body();
  scheduler.end();
  return nullptr;
}

void Scheduler::end() {
  threads_[self()]->ended = true;
  const uint32_t next = select();
  self_ = -1;
  pass_to(*threads_[next]);
}

void Scheduler::pass_to(Thread& thread) {
  thread.baton.store(1, std::memory_order_release);
  syscall(SYS_futex, &thread.baton, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void Scheduler::take_baton(Thread& thread) {
  while (thread.baton.load(std::memory_order_acquire) == 0)
    syscall(SYS_futex, &thread.baton, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  thread.baton.store(0, std::memory_order_relaxed);
}

bool Scheduler::can_run(Thread& thread) {
  if (thread.ended) return false;
  return !thread.waits || now_ >= thread.until || (*thread.ready)();
}

uint32_t Scheduler::select() {
  for (;;) {
    uint32_t able[kMaxThreads];
    uint32_t count = 0;
    uint64_t weights = 0, next_end = kNever;
    for (uint32_t i = 0; i < threads_.size(); i++) {
      Thread& thread = *threads_[i];
      if (can_run(thread)) {
        able[count++] = i;
        weights += thread.weight;
      } else if (!thread.ended && thread.until < next_end) {
        next_end = thread.until;
      }
    }
    if (count > 0) {
      uint64_t chosen = random_.below(weights);
      for (uint32_t i = 0;; i++) {
        const uint64_t weight = threads_[able[i]]->weight;
        if (chosen < weight) return able[i];
        chosen -= weight;
      }
    }
    if (next_end == kNever) {
      stuck_();
      abort();
    }
    now_ = next_end;
  }
}

void Scheduler::switch_thread() {
  const uint32_t next = select();
  Thread& self = *threads_[static_cast<uint32_t>(self_)];
  if (next == static_cast<uint32_t>(self_)) return;
  pass_to(*threads_[next]);
  take_baton(self);
}

// Another program has the thread's CPU.
void Scheduler::pause(uint64_t longest) {
  static const Ready never = [] { return false; };
  if (longest_pause_ != 0) wait(never, now_ + random_.below(std::min(longest, longest_pause_)), "a CPU");
  next_stop_ = now_ + random_.below(kLongestDistance);
}

bool Scheduler::stops_at(uint64_t place, uint64_t rarity) {
  if (!has_slow_places_ || place == 0 || now_ < next_stop_) return false;
  if (mixed(slow_places_ + place * kMaxThreads + self()) % rarity != 0) return false;
  return random_.below(kTimesToAStop) == 0;
}

void Scheduler::point(uint64_t place, uint64_t rarity) {
  now_ += kStep;
  steps_++;
  threads_[self()]->steps++;
  if (preemptions_ != 0 && random_.below(preemptions_) == 0) {
    pause(kLongestSlice);
  } else if (stops_at(place, rarity)) {
    pause(kLongestStop);
  } else if (random_.below(switches_) == 0) {
    switch_thread();
  }
}

void Scheduler::yield() {
  now_ += kYield;
  steps_++;
  threads_[self()]->steps++;
  switch_thread();
}

bool Scheduler::wait(const Ready& ready, uint64_t until, const char* what) {
  Thread& self = *threads_[static_cast<uint32_t>(self_)];
  now_ += kStep;
  steps_++;
  self.ready = &ready;
  self.until = until;
  self.waits = true;
  self.waits_for = what;
  switch_thread();
  self.waits = false;
  self.until = kNever;
  return ready();
}

void Scheduler::await_all() {
  const Ready all_ended = [this] {
    for (uint32_t i = 1; i < threads_.size(); i++)
      if (!threads_[i]->ended && !threads_[i]->is_service) return false;
    return true;
  };
  wait(all_ended, kNever, "the end of all threads");
}

}  // namespace dapple::sim
