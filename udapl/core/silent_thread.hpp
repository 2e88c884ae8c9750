// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <pthread.h>

#include <functional>
#include <utility>

#include "udapl/core/error.hpp"

namespace dapple::udapl {

// A named thread with all signals blocked, because an application's signal handlers must never run on our threads. It
// has the program's usual stack, or more if the program's thread-local variables would leave too little of it.
//
// Movable. Confined to its owner. The destructor leaves a running thread alone, also in a child of fork(), where the
// thread does not exist.
class SilentThread {
 public:
  // name has at most 15 characters. An error is INSUFFICIENT_RESOURCES with the subtype `lacking`, or kMemory, and a
  // line is logged.
  static Result<SilentThread> start(std::function<void()> run, const char* name, Subtype lacking);

  SilentThread() = default;
  SilentThread(SilentThread&& other) noexcept : thread_(other.thread_), runs_(std::exchange(other.runs_, false)) {}
  SilentThread& operator=(SilentThread&& other) noexcept {
    thread_ = other.thread_;
    runs_ = std::exchange(other.runs_, false);
    return *this;
  }
  SilentThread(const SilentThread&) = delete;
  SilentThread& operator=(const SilentThread&) = delete;

  // Waits for the end of the thread.
  void join();
  void detach();
  // Tells whether the caller is this thread.
  bool is_current() const { return runs_ && pthread_equal(pthread_self(), thread_) != 0; }

 private:
  explicit SilentThread(pthread_t thread) : thread_(thread), runs_(true) {}

  pthread_t thread_{};
  bool runs_ = false;  // and is neither joined nor detached
};

}  // namespace dapple::udapl
