// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/child.hpp"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/dapple-run/fail.hpp"

namespace dapple::run {
namespace {

constexpr int kPassedOn[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
constexpr int kOfTerminals[] = {SIGINT, SIGQUIT};

volatile pid_t child = 0;

void pass_on(int signal_number) {
  const int saved = errno;
  if (child > 0) kill(child, signal_number);
  errno = saved;
}

// A terminal sends the signal to both processes, and another process only to this one.
void pass_on_from_process(int signal_number, siginfo_t* sent, void*) {
  if (sent->si_code <= 0) pass_on(signal_number);
}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal_number, &action, nullptr);
}

void handle(int signal_number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO;
  sigaction(signal_number, &action, nullptr);
}

struct sigaction await_children() {
  struct sigaction wanted = {}, found = {};
  wanted.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &wanted, &found);
  return found;
}

}  // namespace

pid_t fork_awaited() {
  static const struct sigaction found = await_children();
  const pid_t made = fork();
  if (made < 0) fail(kCannotRun, "no process for the program: %s", strerror(errno));
  if (made == 0) sigaction(SIGCHLD, &found, nullptr);
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

int run_child(void (*execute)(void* argument), void* argument) {
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
  for (const int signal_number : kOfTerminals) handle(signal_number, pass_on_from_process);
  for (const int signal_number : kPassedOn) handle(signal_number, pass_on);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  const int status = await(child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace dapple::run
