// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/child.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "tests/unit/udapl-registry/checks.hpp"

using dapple::info::ChildResult;
using dapple::info::run_in_child;

namespace {

constexpr int kPatience_ms = 20'000;

void put(int out, const std::string& text) {
  if (write(out, text.data(), text.size()) < 0) _exit(99);
}

void child__answers_apart_from_what_it_prints() {
  const ChildResult result = run_in_child(
      [](int out) {
        put(out, "answer");
        put(STDERR_FILENO, "complaint ");
        put(STDOUT_FILENO, "chatter");
      },
      kPatience_ms);
  CHECK(result.out == "answer");
  CHECK(result.err == "complaint chatter");
  CHECK(result.failure.empty());
}

void child__that_crashes() {
  const ChildResult result = run_in_child(
      [](int out) {
        put(out, "before");
        signal(SIGABRT, SIG_DFL);
        abort();
      },
      kPatience_ms);
  CHECK(result.out == "before");
  CHECK(result.failure == "it crashed: Aborted");
}

void child__that_exits_or_throws() {
  CHECK(run_in_child([](int) { _exit(7); }, kPatience_ms).failure == "it ended its process with code 7");
  CHECK(run_in_child([](int) { throw std::runtime_error("x"); }, kPatience_ms).failure ==
        "it ended its process with code 70");
}

void child__that_hangs() {
  const ChildResult result = run_in_child(
      [](int out) {
        put(out, "before");
        for (;;) pause();
      },
      1000);
  CHECK(result.out == "before");
  CHECK(result.failure == "it did not end within 1 s");
}

// The output is more than a pipe holds, and more than the parent keeps.
void child__that_talks_without_end() {
  const ChildResult result = run_in_child(
      [](int) {
        for (int i = 0; i < 1000; ++i) put(STDERR_FILENO, std::string(1000, 'x'));
      },
      kPatience_ms);
  CHECK(result.failure.empty());
  CHECK(result.err.size() >= 64 * 1024 && result.err.size() < 70 * 1024);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(child__answers_apart_from_what_it_prints),
      TEST(child__that_crashes),
      TEST(child__that_exits_or_throws),
      TEST(child__that_hangs),
      TEST(child__that_talks_without_end),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
