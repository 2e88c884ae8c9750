// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/locks/biased_mutex.hpp"

#include <sched.h>
#include <time.h>

#include "provider/common/host_guards.hpp"
#include "provider/soft/locks/spin_pause.hpp"

namespace dapple::soft {
namespace {

constexpr int kLooks = 64;
constexpr int kYields = 256;
constexpr timespec kNap = {0, 20'000};

[[gnu::tls_model("initial-exec")]] thread_local constinit bool renounces = false;

// The `tries`-th pause of a thread that waits.
void pause(int tries) {
  if (tries < kLooks) {
    spin_pause();
  } else if (tries < kYields) {
    sched_yield();
  } else {
    // A yield does not help an owner of a lower real-time priority.
    nanosleep(&kNap, nullptr);
  }
}

}  // namespace

void BiasedMutex::renounce_privileges() {
  renounces = true;
}

void BiasedMutex::lock_as_others() {
  if (taken_.exchange(true, std::memory_order_acquire)) await_others();
  if (privileged_.load(std::memory_order_relaxed)) end_privilege();
  if (favourite_holds_.load(std::memory_order_acquire)) await_favourite();
}

void BiasedMutex::await_others() {
  const CancelGuard whole;
  for (int tries = 0; taken_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire);
       ++tries) {
    pause(tries);
  }
}

bool BiasedMutex::try_as_others() {
  if (favourite_holds_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire))
    return false;
  if (privileged_.load(std::memory_order_relaxed)) end_privilege();
  if (!favourite_holds_.load(std::memory_order_acquire)) return true;
  taken_.store(false, std::memory_order_release);
  return false;
}

// The favourite may still hold the lock, or look whether it may take it.
void BiasedMutex::await_favourite() {
  const CancelGuard whole;
  for (int tries = 0; favourite_holds_.load(std::memory_order_acquire); ++tries) pause(tries);
}

// The caller has set taken_. The counterpart is lock_as_favourite(): it sees that the privilege is gone, or the caller
// sees that the favourite holds the lock.
void BiasedMutex::end_privilege() {
  privileged_.store(false, std::memory_order_relaxed);
  if (times_needed_ < kMaxTimesInARow) times_needed_ *= 2;
  heavy_barrier();
}

void BiasedMutex::unlock_as_others() {
  const Thread self = this_thread();
  if (self != last_owner_) {
    last_owner_ = self;
    times_in_a_row_ = 0;
  } else if (++times_in_a_row_ >= times_needed_) {
    give_privilege(self);
  }
  taken_.store(false, std::memory_order_release);
}

// The caller has set taken_.
void BiasedMutex::give_privilege(Thread self) {
  times_in_a_row_ = 0;
  const Thread favourite = favourite_.load(std::memory_order_relaxed);
  if (renounces || !have_heavy_barriers() || (favourite != 0 && favourite != self)) return;
  favourite_.store(self, std::memory_order_relaxed);
  privileged_.store(true, std::memory_order_relaxed);
}

}  // namespace dapple::soft
