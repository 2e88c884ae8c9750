// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/quiet_lock.hpp"

#include <initializer_list>

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

sigset_t all_but_faults() {
  sigset_t set;
  sigfillset(&set);
  for (const int number : {SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGABRT}) sigdelset(&set, number);
  return set;
}

}  // namespace

NoSignals::NoSignals() {
  const sigset_t set = all_but_faults();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

NoSignals::~NoSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

QuietLock::Guard::Guard(QuietLock& lock) : lock_(held ? nullptr : &lock) {
  if (lock_ == nullptr) return;
  quiet_.emplace();
  pthread_mutex_lock(&lock_->mutex_);
  held = true;
  _pthread_cleanup_push(
      &at_longjmp_, [](void* guard) { static_cast<Guard*>(guard)->unlock(); }, this);
}

QuietLock::Guard::~Guard() {
  if (lock_ == nullptr) return;
  _pthread_cleanup_pop(&at_longjmp_, 0);
  unlock();
}

void QuietLock::Guard::unlock() {
  held = false;
  pthread_mutex_unlock(&lock_->mutex_);
  lock_ = nullptr;
  quiet_.reset();
}

bool QuietLock::is_held_here() {
  return held;
}

}  // namespace dapple::provider
