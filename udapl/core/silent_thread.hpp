// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>
#include <signal.h>

#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "udapl/core/error.hpp"

namespace dapple::udapl {

// Starts a named thread with all signals blocked, because an application's signal handlers must never run on our
// threads. name has at most 15 characters. An error is INSUFFICIENT_RESOURCES with the subtype `lacking`, or kMemory.
template <class Function>
Result<std::thread> silent_thread(Function&& function, const char* name, Subtype lacking) {
  struct Blocked {
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    sigset_t before;
  } blocked;
  try {
    std::thread thread(std::forward<Function>(function));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error&) {
    return fail(Type::kInsufficientResources, lacking);
  } catch (const std::bad_alloc&) {
    return fail(Type::kInsufficientResources, Subtype::kMemory);
  }
}

}  // namespace dapple::udapl
