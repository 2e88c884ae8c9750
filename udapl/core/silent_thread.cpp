// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/silent_thread.hpp"

#include <dlfcn.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

#include "udapl/core/log.hpp"

namespace dapple::udapl {
namespace {

using Function = std::function<void()>;

// The least stack of a thread of ours, with the calls into librdmacm and the drivers.
constexpr size_t kOwnStack = 256 * 1024;

// glibc takes the room for the static TLS of the program and its libraries from a thread's stack, and tells by this
// function how much a stack must have besides the thread's own use. musl lacks the function, and adds the room itself.
size_t thread_local_room(const pthread_attr_t& attributes) {
  using Least = size_t(const pthread_attr_t*);
  auto* least = reinterpret_cast<Least*>(dlsym(RTLD_DEFAULT, "__pthread_get_minstack"));
  return least == nullptr ? 0 : least(&attributes);
}

// All but the signals of a thread's own faults. Such a signal ends the process if it is blocked, and the program's
// handler, or a sanitizer's, does not run.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t set;
    sigfillset(&set);
    for (const int number : {SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGSYS, SIGABRT}) sigdelset(&set, number);
    pthread_sigmask(SIG_SETMASK, &set, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

void* run_function(void* argument) {
  const std::unique_ptr<Function> function(static_cast<Function*>(argument));
  (*function)();
  return nullptr;
}

// 0, or an errno.
int create(pthread_t& thread, Function* function) {
  pthread_attr_t attributes;
  if (const int error = pthread_attr_init(&attributes); error != 0) return error;
  size_t usual = 0;
  pthread_attr_getstacksize(&attributes, &usual);
  pthread_attr_setstacksize(&attributes, std::max(usual, kOwnStack + thread_local_room(attributes)));
  const SignalsBlocked blocked;
  const int error = pthread_create(&thread, &attributes, run_function, function);
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

Result<SilentThread> SilentThread::start(Function run, const char* name, Subtype lacking) {
  std::unique_ptr<Function> function(new (std::nothrow) Function(std::move(run)));
  if (!function) return fail(Type::kInsufficientResources, Subtype::kMemory);
  pthread_t thread;
  if (const int error = create(thread, function.get()); error != 0) {
    log_error("cannot start the thread %s: %s%s", name, strerror(error),
              error == EAGAIN ? "; raise ulimit -u or ulimit -v, or the limit of the container's processes" : "");
    return fail(Type::kInsufficientResources, lacking);
  }
  (void)function.release();  // the thread's own
  pthread_setname_np(thread, name);
  return SilentThread(thread);
}

void SilentThread::join() {
  if (std::exchange(runs_, false)) pthread_join(thread_, nullptr);
}

void SilentThread::detach() {
  if (std::exchange(runs_, false)) pthread_detach(thread_);
}

}  // namespace dapple::udapl
