// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// cmocka's asserts longjmp, which would skip destructors. So the bodies of these tests use CHECK, which notes a failure
// and goes on, and the frame around them asserts. TEST(body) and TEST_IN_CHILD(body) make a cmocka test of a void().
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
extern "C" {
#include <cmocka.h>
}
// clang-format on
#undef fail  // a function of the code under test, too

inline int failed_checks = 0;
inline bool test_skipped = false;

inline void check(bool good, const char* what, const char* file, int line) {
  if (good) return;
  ++failed_checks;
  std::cout << file << ":" << line << ": not so: " << what << std::endl;
}

template <class A, class B>
void check_equal(const A& a, const B& b, const char* what, const char* file, int line) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, B>) {
    if (std::cmp_equal(a, b)) return;
  } else {
    if (a == b) return;
  }
  ++failed_checks;
  std::cout << file << ":" << line << ": " << what << " is " << a << "\n  not " << b << std::endl;
}

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CHECK_EQUAL(found, expected) check_equal((found), (expected), #found, __FILE__, __LINE__)

template <void (*kBody)()>
void run_checked(void**) {
  failed_checks = 0;
  test_skipped = false;
  kBody();
  if (test_skipped) skip();
  assert_int_equal(failed_checks, 0);
}

/// The same in a process of its own, for actions that a process does only once.
template <void (*kBody)()>
void run_checked_in_child(void**) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    failed_checks = 0;
    kBody();
    // Not _exit(): exit handlers belong to the test, and leak checkers report in them.
    std::exit(failed_checks == 0 ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(::waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#define TEST_IN_CHILD(body)                                        \
  CMUnitTest {                                                     \
#body, run_checked_in_child < body>, nullptr, nullptr, nullptr \
  }
#define TEST(body)                                        \
  CMUnitTest {                                            \
#body, run_checked < body>, nullptr, nullptr, nullptr \
  }
