// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Our code runs on the host program's threads. Each guard keeps one property of the calling thread while it exists.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace dapple {

// Restores errno at its end, for functions that promise to leave it alone.
class ErrnoGuard {
 public:
  ErrnoGuard() : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

// A pthread_cancel() of the thread waits: verbs are not cancellation points, and must not leave a lock held. At its end
// errno is restored.
class CancelGuard {
 public:
  CancelGuard() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); }
  ~CancelGuard() { pthread_setcancelstate(state_, nullptr); }
  CancelGuard(const CancelGuard&) = delete;
  CancelGuard& operator=(const CancelGuard&) = delete;

 private:
  const ErrnoGuard errno_;
  int state_ = PTHREAD_CANCEL_ENABLE;
};

// The thread gets no signals; a handler could call us again and find a lock taken.
class SignalGuard {
 public:
  enum class Except { kNone, kOwnFaults };

  explicit SignalGuard(Except except = Except::kNone) {
    sigset_t set;
    sigfillset(&set);
    if (except == Except::kOwnFaults) {
      for (const int number : {SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGABRT}) sigdelset(&set, number);
    }
    pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~SignalGuard() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  sigset_t before_;
};

}  // namespace dapple
