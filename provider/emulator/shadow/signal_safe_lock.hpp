// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A lock that signal handlers may also take: a thread that holds it gets no signals except those of its own faults. A
// pthread_cancel() of the thread waits, and errno stays as it was.
#pragma once

#include <pthread.h>

#include <optional>

#include "provider/common/host_guards.hpp"

namespace dapple::provider {

class SignalSafeLock {
 public:
  // In a handler for a fault of a thread that holds the lock, this does nothing: the handler may read the data, but
  // must not rely on its consistency. If the handler leaves by longjmp(), the lock is free again.
  class Guard {
   public:
    // patience_ms: the longest wait for the lock. Without it the wait has no limit.
    explicit Guard(SignalSafeLock& lock, std::optional<int> patience_ms = std::nullopt);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    // False if the lock was not free in time.
    bool is_in_time() const { return is_in_time_; }

   private:
    void unlock();

    SignalSafeLock* lock_;
    bool is_in_time_ = true;
    std::optional<SignalGuard> quiet_;
    std::optional<CancelGuard> whole_;
    struct _pthread_cleanup_buffer at_longjmp_;
  };

  // True if this thread holds any SignalSafeLock.
  static bool is_held_here();

 private:
  bool lock(std::optional<int> patience_ms);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace dapple::provider
