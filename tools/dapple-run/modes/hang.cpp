// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/modes/hang.hpp"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "provider/common/clock.hpp"
#include "tools/dapple-run/process/child.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {
namespace {

constexpr char kVariable[] = "DAPPLE_HANG";
constexpr long kLook = 20'000'000;              // nanoseconds
constexpr uint64_t kBegins = 1'000'000'000;     // within which all processes begin to explain
constexpr uint64_t kExplains = 20'000'000'000;  // the most for all reports
constexpr uint64_t kEnds = 2'000'000'000;       // within which the program ends after each signal

void wait_a_little() {
  const timespec look = {0, kLook};
  nanosleep(&look, nullptr);
}

struct Watching {
  HangJudge judge;
  double seconds;
  bool hangs = false;
  uint64_t next_signal_ns = 0;
  int last_signal = 0;
};

// Called again and again while the child runs.
void look_at(void* argument, pid_t child) {
  Watching& watching = *static_cast<Watching*>(argument);
  wait_a_little();
  if (!watching.hangs) {
    if (!watching.judge.finds_hang(watching.seconds)) return;
    watching.hangs = true;
    say("no thread of the program has made progress for %g s: what they wait for follows, and the program is ended",
        watching.seconds);
    watching.judge.explain();
    watching.judge.print_explanations();
    watching.judge.end();
    watching.next_signal_ns = now_ns() + kEnds;
  }
  if (now_ns() < watching.next_signal_ns) return;
  watching.last_signal = watching.last_signal == 0 ? SIGTERM : SIGKILL;
  kill(child, watching.last_signal);
  watching.next_signal_ns = now_ns() + kEnds;
}

}  // namespace

HangJudge::HangJudge() : watch_(*static_cast<soft::HangWatch*>(file_.memory())) {
  setenv(kVariable, file_.path().c_str(), 1);
}

HangJudge::~HangJudge() {
  unsetenv(kVariable);
}

bool HangJudge::finds_hang(double seconds) const {
  const uint64_t progress = watch_.progress_ns.load(), now = now_ns();
  return progress != 0 && now > progress && static_cast<double>(now - progress) / 1e9 > seconds;
}

void HangJudge::explain() {
  watch_.explain.store(1);
  const uint64_t begin = now_ns();
  if (watch_.progress_ns.load() == 0) return;
  for (;; wait_a_little()) {
    const uint64_t passed = now_ns() - begin;
    const bool all = watch_.explained.load() == watch_.explaining.load();
    if (passed > kExplains || (all && passed > kBegins / 4 && watch_.explaining.load() != 0) ||
        (all && passed > kBegins))
      return;
  }
}

void HangJudge::print_explanations() const {
  char text[4096];
  off_t at = sizeof(soft::HangWatch);
  for (ssize_t size; (size = pread(file_.fd(), text, sizeof text, at)) > 0; at += size)
    fwrite(text, 1, static_cast<size_t>(size), stderr);
}

int run_watched_child(double seconds, bool& hangs, void (*execute)(void* argument), void* argument) {
  Watching watching = {.judge = {}, .seconds = seconds};
  const int code = run_child(execute, argument, look_at, &watching);
  hangs = watching.hangs;
  return code;
}

}  // namespace dapple::run
