// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/own_thread.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstddef>
#include <initializer_list>

#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kStackSize = 256 * 1024;
constexpr size_t kRoomyStackSize = 2 * 1024 * 1024;

// glibc takes the room for the static TLS of the program and its libraries from a thread's stack, and tells by this
// function how much a stack must have besides the thread's own use. musl lacks the function, and adds the room itself.
size_t thread_local_room(const pthread_attr_t& attributes) {
  using Least = size_t(const pthread_attr_t*);
  // Once: dlsym() waits while another thread is in dlopen(), where it may hang, and a report needs a new thread then.
  static auto* const least = reinterpret_cast<Least*>(dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  return least == nullptr ? 0 : least(&attributes);
}

// While one exists, the thread gets no signals but those of its own faults, and a thread that it makes inherits this. A
// fault whose signal is blocked ends the process, and the program's handler, or a sanitizer's, does not run.
class OnlyFaults {
 public:
  OnlyFaults() {
    sigset_t set;
    sigfillset(&set);
    for (const int number : {SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGSYS, SIGABRT}) sigdelset(&set, number);
    pthread_sigmask(SIG_SETMASK, &set, &before_);
  }
  ~OnlyFaults() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  OnlyFaults(const OnlyFaults&) = delete;
  OnlyFaults& operator=(const OnlyFaults&) = delete;

 private:
  sigset_t before_;
};

bool has_memory_for(size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED && munmap(memory, size) == 0;
}

int start(pthread_t& thread, size_t stack_size, int detach_state, void* (*run)(void*), void* argument) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, detach_state);
  const size_t size = stack_size + thread_local_room(attributes);
  pthread_attr_setstacksize(&attributes, size);
  const OnlyFaults quiet;
  const int error = pthread_create(&thread, &attributes, run, argument);
  pthread_attr_destroy(&attributes);
  // The C library reports EAGAIN for a lack of memory, too.
  return error == EAGAIN && !has_memory_for(size) ? ENOMEM : error;
}

}  // namespace

int start_own_thread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  return start(thread, kStackSize, PTHREAD_CREATE_DETACHED, run, argument);
}

void run_with_room(void* (*run)(void*), void* argument) {
  const CancelGuard whole;
  pthread_t thread;
  if (start(thread, kRoomyStackSize, PTHREAD_CREATE_JOINABLE, run, argument) == 0) {
    pthread_join(thread, nullptr);
  } else {
    run(argument);
  }
}

}  // namespace dapple::soft
