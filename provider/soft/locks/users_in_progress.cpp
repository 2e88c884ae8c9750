// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/locks/users_in_progress.hpp"

#include <pthread.h>
#include <sched.h>

#include <cassert>
#include <cstdint>

#include "provider/soft/locks/heavy_barrier.hpp"

namespace dapple::soft {
namespace {

// More threads than these rarely use one device at the same time.
constexpr uint32_t kPlaces = 64;
constexpr int kLooksBeforeYield = 64;

struct alignas(64) Line {
  UsersInProgress::Hazard hazard{nullptr};
  std::atomic<bool> claimed{false};
};
constinit Line lines[kPlaces];

pthread_key_t end_of_thread;
constinit bool have_key = false;
pthread_once_t once = PTHREAD_ONCE_INIT;
// A thread whose claim has failed does not try again.
[[gnu::tls_model("initial-exec")]] thread_local constinit bool has_tried = false;

}  // namespace

UsersInProgress::Hazard* UsersInProgress::claim() {
  if (has_tried || !have_heavy_barriers()) return nullptr;
  has_tried = true;
  pthread_once(&once, [] { have_key = pthread_key_create(&end_of_thread, give_back) == 0; });
  if (!have_key) return nullptr;
  for (Line& line : lines) {
    if (line.claimed.load(std::memory_order_relaxed) || line.claimed.exchange(true, std::memory_order_acquire))
      continue;
    if (pthread_setspecific(end_of_thread, &line) != 0) {
      line.claimed.store(false, std::memory_order_release);
      return nullptr;
    }
    assert(line.hazard.load(std::memory_order_relaxed) == nullptr);
    hazard_ = &line.hazard;
    return hazard_;
  }
  return nullptr;
}

void UsersInProgress::give_back(void* line) {
  assert(hazard_ == &static_cast<Line*>(line)->hazard && hazard_->load(std::memory_order_relaxed) == nullptr);
  hazard_ = nullptr;
  static_cast<Line*>(line)->claimed.store(false, std::memory_order_release);
}

void UsersInProgress::await_none(const void* object) {
  if (!have_heavy_barriers()) return;
  heavy_barrier();
  for (const Line& line : lines) {
    for (int looks = 0; line.hazard.load(std::memory_order_acquire) == object; ++looks) {
      if (looks >= kLooksBeforeYield) sched_yield();
    }
  }
}

void UsersInProgress::forget_others() {
  for (Line& line : lines) {
    if (&line.hazard == hazard_) continue;
    line.hazard.store(nullptr, std::memory_order_relaxed);
    line.claimed.store(false, std::memory_order_relaxed);
  }
}

}  // namespace dapple::soft
