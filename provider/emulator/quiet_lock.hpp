// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A lock that signal handlers may also take: a thread that holds it gets no signals except those of its own faults.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <optional>

namespace dapple::provider {

// While it lives, its thread gets no signals except those of its own faults.
class NoSignals {
 public:
  NoSignals();
  ~NoSignals();
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

class QuietLock {
 public:
  // In a handler for a fault of a thread that holds the lock, this does nothing: the handler may read the data, but
  // must not rely on its consistency. If the handler leaves by longjmp(), the lock is free again.
  class Guard {
   public:
    explicit Guard(QuietLock& lock);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    void unlock();

    QuietLock* lock_;
    std::optional<NoSignals> quiet_;
    struct _pthread_cleanup_buffer at_longjmp_;
  };

  // True if this thread holds any QuietLock.
  static bool is_held_here();

 private:
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

}  // namespace dapple::provider
