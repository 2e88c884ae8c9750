// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/cached_stack.hpp"

#include <alloca.h>
#include <dlfcn.h>
#include <string.h>
#include <unwind.h>

#include <algorithm>
#include <thread>

#include "tests/unit/provider/cmocka.hpp"

namespace {

int walks = 0;

}  // namespace

// The cache's calls come here; those of glibc do not.
extern "C" _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace, void* argument) {
  static auto* const walk = reinterpret_cast<decltype(&_Unwind_Backtrace)>(dlsym(RTLD_NEXT, "_Unwind_Backtrace"));
  walks++;
  return walk(trace, argument);
}

namespace {

using dapple::soft::check::cached_stack;
using dapple::soft::check::Stack;

bool all_right = true;

// Compares with the unwinder's answer. Both are asked from the same function, so only the innermost addresses differ:
// without optimization the unwinder's stack also has Stack::here(), and with a sanitizer the sanitizer's function.
// Several calls by the same callers get the cache's answer from the second on.
[[gnu::noinline]] void ask() {
  const Stack cached = cached_stack();
  const Stack walked = Stack::here();
  int more = 0;
  while (more < 4 && walked.callers[1 + more] != cached.callers[1]) more++;
  const int count = std::min(cached.count, walked.count - more);
  all_right =
      all_right && count > 1 && (cached.count == count || walked.count == Stack::kMax) &&
      memcmp(cached.callers + 1, walked.callers + 1 + more, sizeof(void*) * static_cast<size_t>(count - 1)) == 0;
}

[[gnu::noinline]] void deep(int depth) {
  if (depth == 0) {
    ask();
  } else {
    deep(depth - 1);
  }
  asm volatile("" ::: "memory");  // no tail call
}

[[gnu::noinline]] void one_caller() {
  ask();
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void other_caller() {
  ask();
  asm volatile("" ::: "memory");
}

// The place of the caller's return address depends on the size.
[[gnu::noinline]] void with_room(size_t size) {
  memset(alloca(size), 1, size);
  ask();
  asm volatile("" ::: "memory");
}

void cached_stack__same_callers__is_right_each_time(void**) {
  for (int i = 0; i < 3; i++) one_caller();
  assert_true(all_right);
}

void cached_stack__other_callers_of_one_call__are_told_apart(void**) {
  for (int i = 0; i < 4; i++) {
    one_caller();
    other_caller();
  }
  assert_true(all_right);
}

void cached_stack__lines_in_turn__are_walked_once_each(void**) {
#ifdef __x86_64__
  const volatile int rounds = 20;  // not unrolled, so the lines are six
  walks = 0;
  for (int i = 0; i < rounds; i++) {
    one_caller();
    other_caller();
    one_caller();
    other_caller();
    deep(1);
    deep(2);
  }
  assert_true(all_right);
  assert_in_range(walks, 6, 12);  // the first round may stand before the loop
#else
  skip();
#endif
}

void cached_stack__recursion__has_its_depth(void**) {
  for (int i = 0; i < 100; i++) deep(i % 40);
  assert_true(all_right);
}

void cached_stack__frames_of_any_size__have_their_callers(void**) {
  for (size_t i = 0; i < 100; i++) with_room(16 + i * 48 % 1024);
  assert_true(all_right);
}

void cached_stack__threads_one_after_the_other__have_their_own(void**) {
  for (int i = 0; i < 4; i++) std::thread([i] { i % 2 == 0 ? one_caller() : deep(3); }).join();
  assert_true(all_right);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(cached_stack__same_callers__is_right_each_time),
      cmocka_unit_test(cached_stack__other_callers_of_one_call__are_told_apart),
      cmocka_unit_test(cached_stack__lines_in_turn__are_walked_once_each),
      cmocka_unit_test(cached_stack__recursion__has_its_depth),
      cmocka_unit_test(cached_stack__frames_of_any_size__have_their_callers),
      cmocka_unit_test(cached_stack__threads_one_after_the_other__have_their_own),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
