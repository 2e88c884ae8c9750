// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The frame of a test whose processes start and die: a network namespace, memory that all share, and a clean end.
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

#include "tests/native/clock.hpp"

namespace dapple::tests {

// Prints and counts a failure.
void failed(const char* what, const char* more = "");
uint32_t failures();

// The number in an environment variable, or the default.
unsigned long number_from(const char* variable, unsigned long usual);

// Enters a network namespace of the test's own, and makes orphans children of this process. Returns zeroed memory that
// its children share, or skips the test.
void* prepare_stage(size_t size);

template <class Shared>
Shared* prepare_stage() {
  return new (prepare_stage(sizeof(Shared))) Shared;
}

// A child whose exit code is body()'s result, and which does not outlive this process.
template <class Body>
pid_t start_process(Body body) {
  const pid_t process = fork();
  if (process != 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  _exit(body());
}

// Ends the body of such a process with 1, and says why, if the condition does not hold.
#define MUST(condition)                                                                           \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
      return 1;                                                                                   \
    }                                                                                             \
  } while (false)

// Waits for an exit with this code.
bool ends_with(pid_t process, int code);

// Waits until the condition holds, and calls meanwhile() in between. False after this number of seconds.
template <class Condition, class Meanwhile>
bool await(double seconds, Condition condition, Meanwhile meanwhile) {
  for (const double end = now() + seconds; now() < end; usleep(10000)) {
    meanwhile();
    if (condition()) return true;
  }
  return false;
}
template <class Condition>
bool await(double seconds, Condition condition) {
  return await(seconds, condition, [] {});
}

// Called at the end, when all processes have been told to end: no other process and nothing of dappled may be left.
void expect_nothing_left();

}  // namespace dapple::tests
