// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/link.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <mutex>

#include "provider/common/host_guards.hpp"
#include "provider/common/mutex.hpp"
#include "provider/preload/doors/capture.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"
#include "provider/preload/doors/rdma_cm.hpp"
#include "provider/preload/doors/rdma_cm_answers.hpp"
#include "provider/system/own_thread.hpp"

namespace dapple::doors {
namespace {

constexpr int kRetryMilliseconds = 1000;

constinit soft::Mutex opening{soft::LockRank::kOpenedLink};
// Never destroyed: programs ask from their last destructors, too.
constinit std::atomic<soft::DaemonLink*> opened = nullptr;

constinit std::atomic<unsigned> connections = 1;

enum class Watch : uint8_t { kNone, kRunning, kImpossible };
constinit std::atomic<Watch> watch = Watch::kNone;
constinit std::atomic<int> wake = -1;  // an eventfd: there is another connection to look at

// ThreadSanitizer ends a child that starts a thread if its parent has several threads. start_watch() looks for
// ThreadSanitizer before a fork.
constinit bool child_may_start_threads = true;

void fork_prepare() {
  block_signals_for_fork();
  hold_events();
  opening.lock();
  if (soft::DaemonLink* link = opened.load()) link->fork_prepare();
}

void fork_parent() {
  if (soft::DaemonLink* link = opened.load()) link->fork_parent();
  opening.unlock();
  release_events();
  restore_signals_after_fork();
}

void fork_child() {
  if (soft::DaemonLink* link = opened.load()) link->fork_child();
  forget_capture();
  forget_answers();
  if (const int fd = wake.exchange(-1); fd >= 0) close_hidden(fd);
  if (watch != Watch::kNone) watch = child_may_start_threads ? Watch::kNone : Watch::kImpossible;
  opening.unlock();
  release_events();
  restore_signals_after_fork();
}

// Registered late on purpose. A library may call connection() under a lock that its own handler takes, too. That
// handler is older, as a rule, and a fork takes the locks of newer handlers first, so it waits for ours and not for the
// library's.
void handle_forks() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] { pthread_atfork(fork_prepare, fork_parent, fork_child); });
}

struct Handing {
  soft::DaemonLink& link;
  soft::Problem& problem;
};

void tell_loss(const soft::Problem& loss) {
  if (loss.line[0] != '\0') fprintf(stderr, "dapple: rdma_cm: %s\n", loss.line);
}

bool hand_over(const Door& door, void* argument) {
  const Handing& to = *static_cast<const Handing*>(argument);
  soft::Problem loss;
  const bool connected = to.link.restore({door.channel, door.attached[0], door.attached[1]}, to.problem, loss);
  tell_loss(loss);
  return connected;
}

// Another dappled has replaced this one, or this is a child of fork().
void reconnected(soft::DaemonLink& link, soft::Problem& problem) {
  connections++;
  const bool connected = resume_capture(link);
  drop_all_answers();
  Handing handing = {link, problem};
  if (connected) visit(Kind::kRdmaCm, hand_over, &handing);
  const uint64_t one = 1;
  if (const int fd = wake.load(); fd >= 0) real.write(fd, &one, sizeof one);
}

[[noreturn]] void* look_after_connection(void*) {
  prctl(PR_SET_NAME, "dapple-doors");
  soft::DaemonLink* link = opened.load();
  for (;;) {
    soft::Problem problem;
    const bool connected = link->check(problem);
    if (!connected) complain(problem);
    // A thread that got no answer may have closed the connection.
    pollfd waiting[] = {{wake.load(), POLLIN, 0}, {link->fd(), POLLRDHUP, 0}};
    poll(waiting, 2, connected && waiting[1].fd >= 0 ? -1 : kRetryMilliseconds);
    uint64_t count;
    if (waiting[0].revents != 0) [[maybe_unused]]
      const ssize_t got = read(waiting[0].fd, &count, sizeof count);
  }
}

bool start_watch() {
  child_may_start_threads = dlsym(RTLD_DEFAULT, "__tsan_init") == nullptr;
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return false;
  wake = hide(fd);
  if (soft::start_own_thread(look_after_connection, nullptr) == 0) return true;
  close_hidden(wake.exchange(-1));
  return false;
}

}  // namespace

namespace {

// Of this thread.
struct SignalsOfFork {
  unsigned depth;
  sigset_t before;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit SignalsOfFork signals_of_fork = {};

}  // namespace

void block_signals_for_fork() {
  if (signals_of_fork.depth++ != 0) return;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &signals_of_fork.before);
}

void restore_signals_after_fork() {
  assert(signals_of_fork.depth != 0);
  if (--signals_of_fork.depth == 0) pthread_sigmask(SIG_SETMASK, &signals_of_fork.before, nullptr);
}

void complain(const soft::Problem& problem, const char* lack) {
  static constinit std::atomic<uint64_t> told = 0;
  const uint64_t one = uint64_t{1} << (problem.error & 63);
  if (problem.line[0] == '\0' || (told.fetch_or(one) & one) != 0) return;
  fprintf(stderr, "dapple: %s: %s\n", lack, problem.line);
}

soft::DaemonLink* connection(soft::Problem& problem) {
  soft::DaemonLink* link = opened.load(std::memory_order_acquire);
  if (link != nullptr) return link;
  // Before the lock: a fork that begins now has to wait for it.
  handle_forks();
  const std::lock_guard lock(opening);
  link = opened.load();
  if (link != nullptr) return link;
  link = soft::DaemonLink::open(problem).release();
  if (link == nullptr) return nullptr;
  link->when_reconnected(reconnected);
  opened.store(link, std::memory_order_release);
  return link;
}

unsigned connection_number() {
  return connections.load();
}

void restore_if_missed(const Door& door, unsigned before) {
  if (connections.load() == before) return;
  soft::Problem problem, loss;
  soft::DaemonLink* link = connection(problem);
  if (link == nullptr) return;
  link->restore_late({door.channel, door.attached[0], door.attached[1]}, problem, loss);
  tell_loss(loss);
}

void watch_connection() {
  if (watch.load(std::memory_order_acquire) != Watch::kNone) return;
  const CancelGuard whole;
  const SignalGuard quiet;
  const std::lock_guard lock(opening);
  // Without a thread the next command notices that dappled has died.
  if (watch == Watch::kNone && opened.load() != nullptr) {
    watch.store(start_watch() ? Watch::kRunning : Watch::kImpossible, std::memory_order_release);
  }
}

}  // namespace dapple::doors
