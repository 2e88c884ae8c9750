// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace dapple::udapl {

// Starts a named thread with all signals blocked, because an application's signal handlers must never run on our
// threads. name has at most 15 characters. Throws std::system_error.
template <class Function>
std::thread silent_thread(Function&& function, const char* name) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } blocked;
  std::thread thread(std::forward<Function>(function));
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace dapple::udapl
