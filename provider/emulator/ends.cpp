// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/ends.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unwind.h>

#include <initializer_list>

#include "provider/emulator/emulator.hpp"
#include "provider/emulator/shadow/finding.hpp"

namespace dapple::provider {
namespace {

void report_all(Emulator::End end) {
  if (Emulator* emulator = Emulator::running()) emulator->report_all(end);
}

// raise() makes the signal pending. It is delivered when this handler returns, and then has its default effect.
void report_and_end(int number) {
  const int saved_errno = errno;
  report_all(Emulator::End::kSignal);
  signal(number, SIG_DFL);
  raise(number);
  errno = saved_errno;
}

// The program may be broken, so this writes only the findings that wait to be shown, without stacks. A fault is raised
// again when the handler returns; other signals need raise().
void write_and_end(int number, siginfo_t* info, void*) {
  const int saved_errno = errno;
  write_findings();
  signal(number, SIG_DFL);
  if (info->si_code <= 0) raise(number);
  errno = saved_errno;
}

// Sets the action unless the program handles or ignores the signal.
void handle(int number, struct sigaction action) {
  struct sigaction before;
  if (sigaction(number, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0) return;
  if (before.sa_handler == SIG_DFL) sigaction(number, &action, nullptr);
}

// The unwinder tells whether a frame's address is the next instruction of a frame that a signal has interrupted, or a
// return address.
_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* found) {
  int is_interrupted = 0;
  _Unwind_GetIPInfo(frame, &is_interrupted);
  if (is_interrupted != 0) *static_cast<bool*>(found) = true;
  return _URC_NO_REASON;
}

__attribute__((destructor)) void report_at_exit() {
  report_all(Emulator::End::kExit);
}

}  // namespace

void report_before_the_end() {
  static bool arranged = false;
  if (!arranged) at_quick_exit(report_at_exit);
  arranged = true;
  struct sigaction action = {};
  sigfillset(&action.sa_mask);
  action.sa_handler = report_and_end;
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) handle(number, action);
  if (!is_checked()) return;
  action.sa_sigaction = write_and_end;
  action.sa_flags = SA_SIGINFO;
  for (const int number : {SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGQUIT, SIGSEGV}) handle(number, action);
}

bool in_signal_handler() {
  bool found = false;
  _Unwind_Backtrace(look_at, &found);
  return found;
}

}  // namespace dapple::provider
