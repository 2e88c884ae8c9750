// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A test program in a few lines, for tests that are also built for architectures of which this machine has no cmocka.
#pragma once

#include <stddef.h>
#include <stdio.h>

namespace dapple::test {

struct Test {
  const char* name;
  void (*run)();
};

inline int failures = 0;
inline const char* skipped_because = nullptr;

// Runs all tests, prints a line for each, and returns the program's exit code.
inline int run_all(const Test* tests, size_t num_tests) {
  size_t num_failed = 0;
  for (size_t i = 0; i < num_tests; ++i) {
    const int before = failures;
    skipped_because = nullptr;
    tests[i].run();
    const bool passed = failures == before;
    num_failed += !passed;
    if (passed && skipped_because != nullptr) {
      printf("SKIP   %s: %s\n", tests[i].name, skipped_because);
    } else {
      printf("%s %s\n", passed ? "ok    " : "FAILED", tests[i].name);
    }
  }
  printf("%zu tests, %zu failed\n", num_tests, num_failed);
  return num_failed == 0 && num_tests != 0 ? 0 : 1;
}

}  // namespace dapple::test

// Counts a failure and goes on.
#define CHECK(condition)                                               \
  do {                                                                 \
    if (!(condition)) {                                                \
      ++dapple::test::failures;                                        \
      printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                  \
  } while (false)

// Prints why a test, or a part of one, does not apply; the test goes on.
#define SKIP(reason) (dapple::test::skipped_because = (reason))
