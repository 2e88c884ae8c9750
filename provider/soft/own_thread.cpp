// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/own_thread.hpp"

#include <pthread.h>
#include <signal.h>

#include <cstddef>

#include "provider/soft/undisturbed.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kStackSize = 256 * 1024;
constexpr size_t kRoomyStackSize = 2 * 1024 * 1024;

int start(pthread_t& thread, size_t stack_size, int detach_state, void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, detach_state);
  pthread_attr_setstacksize(&attributes, stack_size);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

int start_own_thread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  return start(thread, kStackSize, PTHREAD_CREATE_DETACHED, run, argument);
}

void run_with_room(void* (*run)(void*), void* argument) {
  const Undisturbed undisturbed;
  pthread_t thread;
  if (start(thread, kRoomyStackSize, PTHREAD_CREATE_JOINABLE, run, argument) == 0) {
    pthread_join(thread, nullptr);
  } else {
    run(argument);
  }
}

}  // namespace dapple::soft
