// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <optional>

#include "provider/soft/hang/threads/proc_files.hpp"
#include "provider/source_lines/loaded_code.hpp"
#include "provider/system/own_thread.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft::hang;

std::atomic<int> thread{0};
std::atomic<bool> ends{false};

void wait_ms(long milliseconds) {
  const timespec time = {milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

// glibc's sigprocmask() leaves its own signals out.
void set_blocked(uint64_t blocked, uint64_t* before) {
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, before, sizeof blocked);
}

void* block_for_a_while(void* blocked) {
  uint64_t own = 0;
  set_blocked(*static_cast<const uint64_t*>(blocked), &own);
  thread.store(gettid());
  wait_ms(50);
  set_blocked(own, nullptr);
  while (!ends.load()) wait_ms(1);
  thread.store(0);
  return nullptr;
}

void wait_for_one_that_blocks(uint64_t blocked) {
  ends.store(false);
  assert_int_equal(dapple::soft::start_own_thread(block_for_a_while, &blocked), 0);
  while (thread.load() == 0) wait_ms(1);
  const ThreadStatus at_once = read_thread_status(thread.load());
  // On a busy machine this may be late.
  if (at_once.changes) assert_false(at_once.is_ours);
  const ThreadStatus settled = read_settled_thread_status(thread.load());
  assert_false(settled.changes);
  assert_true(settled.is_ours);
  ends.store(true);
  while (thread.load() != 0) wait_ms(1);
}

// A thread of ours in pthread_create() blocks all signals. When it ends, it gets the one for setxid() of all threads.
void waits_for_a_thread_that_changes(void**) {
  constexpr uint64_t kSetxid = uint64_t{1} << 32;
  wait_for_one_that_blocks(~uint64_t{0});
  wait_for_one_that_blocks(~kSetxid);
}

void knows_the_programs_thread(void**) {
  const ThreadStatus own = read_settled_thread_status(gettid());
  assert_false(own.is_ours);
  assert_false(own.changes);
  assert_false(own.name.empty());
}

void says_that_a_thread_has_ended(void**) {
  // No thread has this number, since it is the largest that the kernel could give out.
  assert_true(read_settled_thread_status(1 << 22).name.empty());
}

std::atomic<int> reader{-1};

void* read_from_reader(void*) {
  char byte;
  thread.store(gettid());
  while (read(reader.load(), &byte, sizeof byte) != 0) {
  }
  return nullptr;
}

void knows_the_call_in_which_a_thread_waits(void**) {
  int ends_of_pipe[2];
  assert_int_equal(pipe(ends_of_pipe), 0);
  reader.store(ends_of_pipe[0]);
  thread.store(0);
  pthread_t reading;
  assert_int_equal(pthread_create(&reading, nullptr, read_from_reader, nullptr), 0);
  std::optional<WaitingCall> call;
  for (int i = 0; i < 10'000 && (!call || call->arguments[2] != 1); i++) {
    wait_ms(1);
    if (thread.load() != 0) call = read_waiting_call(thread.load());
  }
  assert_true(call.has_value());
  assert_int_equal(call->arguments[2], 1);
  assert_int_equal(call->arguments[0], ends_of_pipe[0]);
  assert_non_null(dapple::source_lines::loaded_code_at(reinterpret_cast<void*>(call->behind)).file);
  close(ends_of_pipe[1]);
  assert_int_equal(pthread_join(reading, nullptr), 0);
  close(ends_of_pipe[0]);
}

void knows_no_call_of_a_thread_that_has_ended(void**) {
  assert_false(read_waiting_call(1 << 22).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(waits_for_a_thread_that_changes),
      cmocka_unit_test(knows_the_programs_thread),
      cmocka_unit_test(says_that_a_thread_has_ended),
      cmocka_unit_test(knows_the_call_in_which_a_thread_waits),
      cmocka_unit_test(knows_no_call_of_a_thread_that_has_ended),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
