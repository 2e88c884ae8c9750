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

volatile pid_t child = 0;

void pass_on(int signal_number) {
  const int saved = errno;
  if (child > 0) kill(child, signal_number);
  errno = saved;
}

void nothing(int) {}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal_number, &action, nullptr);
}

int wait_for_child() {
  int status = 0;
  // A signal that was passed on interrupts a wait.
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int run_child(void (*execute)(void* argument), void* argument) {
  // No signal is lost between the child's start and our handlers.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  child = fork();
  if (child < 0) fail(kCannotRun, "no process for the program: %s", strerror(errno));
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execute(argument);
    _exit(kCannotRun);
  }
  // A terminal sends these signals to both processes.
  handle(SIGINT, nothing);
  handle(SIGQUIT, nothing);
  for (const int signal_number : kPassedOn) handle(signal_number, pass_on);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return wait_for_child();
}

}  // namespace dapple::run
