// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/ends.hpp"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <initializer_list>

#include "provider/emulator/emulator.hpp"

namespace dapple::provider {
namespace {

void report(Emulator::End end) {
  if (Emulator* emulator = Emulator::running()) emulator->report_all(end);
}

void report_at_quick_exit() {
  report(Emulator::End::kExit);
}

// The signal comes again when this returns, and has its usual effect.
void report_and_end(int number) {
  const int saved_errno = errno;
  report(Emulator::End::kSignal);
  signal(number, SIG_DFL);
  raise(number);
  errno = saved_errno;
}

__attribute__((destructor)) void report_at_exit() {
  report(Emulator::End::kExit);
}

}  // namespace

void report_before_the_end() {
  static bool arranged = false;
  if (!arranged) at_quick_exit(report_at_quick_exit);
  arranged = true;
  for (const int number : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) != 0 || (action.sa_flags & SA_SIGINFO) != 0) continue;
    if (action.sa_handler != SIG_DFL) continue;
    action = {};
    action.sa_handler = report_and_end;
    sigfillset(&action.sa_mask);
    sigaction(number, &action, nullptr);
  }
}

}  // namespace dapple::provider
