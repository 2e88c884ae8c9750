// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow/signal_safe_lock.hpp"

#include <time.h>

#include <cassert>

// Exported by the C library, and not declared in its headers for C++. longjmp() runs these clean-ups for the frames
// that it leaves.
extern "C" {
void _pthread_cleanup_push(struct _pthread_cleanup_buffer* buffer, void (*routine)(void*), void* argument) noexcept;
void _pthread_cleanup_pop(struct _pthread_cleanup_buffer* buffer, int execute) noexcept;
}

namespace dapple::provider {
namespace {

// With initial-exec the variable exists without an allocation, which signal handlers need.
[[gnu::tls_model("initial-exec")]] thread_local bool held;

#ifdef __SANITIZE_THREAD__  // it does not know pthread_mutex_clocklock()
constexpr clockid_t kClock = CLOCK_REALTIME;
bool lock_until(pthread_mutex_t& mutex, const timespec& end) {
  return pthread_mutex_timedlock(&mutex, &end) == 0;
}
#else
// Nobody can set this clock.
constexpr clockid_t kClock = CLOCK_MONOTONIC;
bool lock_until(pthread_mutex_t& mutex, const timespec& end) {
  return pthread_mutex_clocklock(&mutex, kClock, &end) == 0;
}
#endif

}  // namespace

bool SignalSafeLock::lock(std::optional<int> patience_ms) {
  if (!patience_ms) return pthread_mutex_lock(&mutex_) == 0;
  timespec end;
  clock_gettime(kClock, &end);
  const long ns = end.tv_nsec + *patience_ms % 1000 * 1'000'000L;
  end.tv_sec += *patience_ms / 1000 + ns / 1'000'000'000;
  end.tv_nsec = ns % 1'000'000'000;
  return lock_until(mutex_, end);
}

SignalSafeLock::Guard::Guard(SignalSafeLock& lock, std::optional<int> patience_ms) : lock_(held ? nullptr : &lock) {
  if (lock_ == nullptr) return;
  quiet_.emplace(SignalGuard::Except::kOwnFaults);
  whole_.emplace();
  if (!lock_->lock(patience_ms)) {
    whole_.reset();
    quiet_.reset();
    lock_ = nullptr;
    is_in_time_ = false;
    return;
  }
  assert(!held);
  held = true;
  _pthread_cleanup_push(
      &at_longjmp_, [](void* guard) { static_cast<Guard*>(guard)->unlock(); }, this);
}

SignalSafeLock::Guard::~Guard() {
  if (lock_ == nullptr) return;
  _pthread_cleanup_pop(&at_longjmp_, 0);
  unlock();
}

void SignalSafeLock::Guard::unlock() {
  assert(held && lock_ != nullptr);
  held = false;
  pthread_mutex_unlock(&lock_->mutex_);
  lock_ = nullptr;
  whole_.reset();
  quiet_.reset();
}

bool SignalSafeLock::is_held_here() {
  return held;
}

}  // namespace dapple::provider
