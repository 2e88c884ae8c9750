// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/child.hpp"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

#include "provider/system/problem.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {
namespace {

constexpr int kPassedOn[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

volatile pid_t child = 0;

void pass_on(int signal_number, siginfo_t* sent, void*) {
  // A terminal sends these two to both processes, and another process only to this one.
  const bool from_terminal = (signal_number == SIGINT || signal_number == SIGQUIT) && sent->si_code > 0;
  const int saved = errno;
  if (child > 0 && !from_terminal) kill(child, signal_number);
  errno = saved;
}

struct sigaction await_children() {
  struct sigaction wanted = {}, found = {};
  wanted.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &wanted, &found);
  return found;
}

}  // namespace

pid_t try_to_fork_awaited() {
  static const struct sigaction found = await_children();
  const pid_t made = fork();
  if (made == 0) sigaction(SIGCHLD, &found, nullptr);
  return made;
}

pid_t fork_awaited() {
  const pid_t made = try_to_fork_awaited();
  if (made < 0) {
    const int error = errno;
    fail(kCannotRun, "cannot start a process for the program: %s%s", strerror(error), soft::process_remedy(error));
  }
  return made;
}

int await(pid_t awaited) {
  int status = 0;
  // A signal that was passed on interrupts a wait.
  while (waitpid(awaited, &status, 0) < 0) {
    if (errno != EINTR) fail(kCannotRun, "the program's exit code is lost: %s", strerror(errno));
  }
  return status;
}

int run_child(void (*execute)(void* argument), void* argument, void (*look)(void* watching, pid_t child),
              void* watching) {
  // No signal is lost between the child's start and our handlers.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  child = fork_awaited();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execute(argument);
    _exit(kCannotRun);
  }
  struct sigaction action = {}, found[std::size(kPassedOn)];
  action.sa_sigaction = pass_on;
  action.sa_flags = SA_SIGINFO;
  for (size_t i = 0; i < std::size(kPassedOn); i++) sigaction(kPassedOn[i], &action, &found[i]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  siginfo_t ended = {};
  while (look != nullptr && waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 &&
         ended.si_pid == 0)
    look(watching, child);
  while (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  // Once the wait below is over, the child's number may be another process'.
  for (size_t i = 0; i < std::size(kPassedOn); i++) sigaction(kPassedOn[i], &found[i], nullptr);
  const int status = await(child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace dapple::run
