// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/watcher.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cassert>
#include <new>

#include "provider/common/clock.hpp"
#include "provider/common/settings.hpp"
#include "provider/member/open_questions.hpp"
#include "provider/soft/hang/causes.hpp"
#include "provider/soft/hang/hang_reporter.hpp"
#include "provider/soft/hang/threads/proc_files.hpp"
#include "provider/soft/hang/unacknowledged.hpp"
#include "provider/soft/hang/unanswered.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/own_thread.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft::hang {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr long kTick = 20'000'000;  // nanoseconds
constexpr uint64_t kLooksEvery = kSecond / 5;
// A process is quiet after this time without progress.
constexpr uint64_t kQuiet = kSecond / 10;
// dapple-run may have ended before it tells its programs to.
constexpr uint64_t kPatience = 30 * kSecond;

constinit std::atomic<pid_t> watched{0};  // the process whose watcher runs
constinit std::atomic<bool> asked_by_signal{false};

HangWatch* map_watch() {
  const char* name = provider::settings().hang;
  if (name == nullptr) return nullptr;
  const OwnedFd file(open(name, O_RDWR | O_CLOEXEC));
  if (!file) return nullptr;
  void* memory = mmap(nullptr, sizeof(HangWatch), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return memory == MAP_FAILED ? nullptr : static_cast<HangWatch*>(memory);
}

void wait_a_tick() {
  constexpr timespec kWait = {0, kTick};
  nanosleep(&kWait, nullptr);
}

bool asks_dappled() {
  return open_questions.load(std::memory_order_relaxed) != 0 || (doors() != nullptr && doors()->asks_dappled());
}

}  // namespace

// The signal's action follows when the watcher has written the report. A child of fork() has no watcher of its own
// until it makes a completion queue.
void Watcher::at_quit(int signal_number) {
  const int saved = errno;
  if (watched.load() == getpid()) {
    asked_by_signal.store(true);
  } else {
    signal(signal_number, SIG_DFL);
    raise(signal_number);
  }
  errno = saved;
}

void Watcher::start() {
  pid_t before = watched.load();
  const pid_t process = getpid();
  if (before == process || !watched.compare_exchange_strong(before, process)) return;
  hang_reporter();
  auto* watcher = new (std::nothrow) Watcher;
  if (watcher == nullptr) return;
  watcher->watch_ = map_watch();
  if (start_own_thread(run, watcher) != 0) {
    delete watcher;
    return;
  }
  // The program's own handler stays, and so does its wish to ignore the signal.
  struct sigaction found;
  if (sigaction(SIGQUIT, nullptr, &found) != 0 || (found.sa_flags & SA_SIGINFO) != 0 || found.sa_handler != SIG_DFL)
    return;
  struct sigaction action = {};
  action.sa_handler = at_quit;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigaction(SIGQUIT, &action, nullptr);
}

void Watcher::start_with_cm() {
  const provider::Settings& settings = provider::settings();
  if (doors() != nullptr && (settings.hang != nullptr || settings.check_records != nullptr))
    doors()->when_cm_begins(start);
}

void* Watcher::run(void* watcher) {
  static_cast<Watcher*>(watcher)->work();
}

void Watcher::work() {
  assert(watched.load() == getpid());
  last_progress_ns_ = now_ns();
  uint64_t next_look = 0;
  for (;; wait_a_tick()) {
    const uint64_t now = now_ns();
    if (now >= next_look) {
      next_look = now + kLooksEvery;
      look_at_threads();
      if (has_progress()) last_progress_ns_ = now;
      // Another process may have got on since.
      if (watch_ != nullptr && watch_->progress_ns.load() < last_progress_ns_)
        watch_->progress_ns.store(last_progress_ns_);
    }
    if (asked_by_signal.load()) quit();
    if (watch_ != nullptr && watch_->explain.load() != 0) end_with_dapple_run();
  }
}

void Watcher::look_at_threads() {
  std::map<int, Since> since;
  const uint64_t now = now_ns();
  for (const int thread : threads_of_process()) {
    const ThreadStatus status = read_thread_status(thread);
    if (status.is_ours) continue;
    const auto found = since_.find(thread);
    since[thread] = found != since_.end() && found->second.switches == status.switches ? found->second
                                                                                       : Since{status.switches, now};
  }
  since_.swap(since);
  assert(last_progress_ns_ <= now);
}

// A program that computes, and polls nothing meanwhile, gets on. So does one that waits for dappled.
bool Watcher::has_progress() {
  const uint64_t progress = notes_.progress() + cm_events(), empty_polls = notes_.empty_polls();
  uint64_t ticks = 0;
  bool runs = false;
  for (const auto& [thread, since] : since_) {
    const ThreadStatus status = read_thread_status(thread);
    ticks += status.ticks;
    runs = runs || status.runs;
  }
  // A tick is 10 ms.
  const bool computes = (runs || ticks > ticks_ + kLooksEvery / 10'000'000 / 2) && empty_polls == empty_polls_;
  const bool result = progress != progress_ || computes || asks_dappled();
  progress_ = progress;
  empty_polls_ = empty_polls;
  ticks_ = ticks;
  return result;
}

void* Watcher::write_report_of(void* watcher) {
  auto& own = *static_cast<Watcher*>(watcher);
  const uint64_t now = now_ns();
  const bool is_quiet = now - own.last_progress_ns_ >= kQuiet;
  View view = look(own.notes_, is_quiet);
  check::Reporter& reporter = hang_reporter();
  if (may_be_not_ready(view)) {
    // A peer waits for 0.66 s at most before it sends again.
    const View before = view;
    for (int i = 0; i < 40 && not_ready(before, view).empty(); i++) {
      wait_a_tick();
      view = look(own.notes_, is_quiet);
    }
    for (const check::Report& report : not_ready(before, view)) reporter.show(report, nullptr);
  }
  for (const check::Report& report : lost_receives(view)) reporter.show(report, nullptr);
  // In a program that gets on, a thread may be about to answer.
  const std::vector<check::Report> unanswered = is_quiet ? unanswered_events() : std::vector<check::Report>();
  for (const check::Report& report : unanswered) reporter.show(report, nullptr);
  view.owes_answers = !unanswered.empty();
  const std::vector<ThreadStack> threads = stacks_of_threads();
  view.threads = threads.size();
  for (const ThreadStack& thread : threads) {
    const auto found = own.since_.find(thread.thread);
    const auto poller = view.pollers.find(thread.thread);
    uint64_t since = found == own.since_.end() ? now : found->second.time_ns;
    if (poller != view.pollers.end() && poller->second.since_ns < since) since = poller->second.since_ns;
    const double seconds = static_cast<double>(now - since) / kSecond;
    for (const check::Report& report : explain(thread, wait_of(thread, view), view, seconds))
      reporter.show(report, nullptr);
  }
  return nullptr;
}

// Names need more stack than the watcher has.
void Watcher::write_report() {
  run_with_room(write_report_of, this);
}

void Watcher::quit() {
  write_report();
  // The program's threads are in handlers that block it.
  signal(SIGQUIT, SIG_DFL);
  sigset_t quits;
  sigemptyset(&quits);
  sigaddset(&quits, SIGQUIT);
  pthread_sigmask(SIG_UNBLOCK, &quits, nullptr);
  kill(getpid(), SIGQUIT);
  for (;;) wait_a_tick();
}

void Watcher::end_with_dapple_run() {
  assert(watch_ != nullptr);
  watch_->explaining.fetch_add(1);
  hang_reporter().print_to(provider::settings().hang);
  write_report();
  watch_->explained.fetch_add(1);
  const uint64_t until = now_ns() + kPatience;
  while (watch_->end.load() == 0 && now_ns() < until) wait_a_tick();
  _exit(hang_reporter().options().exit_code);
}

}  // namespace dapple::soft::hang
