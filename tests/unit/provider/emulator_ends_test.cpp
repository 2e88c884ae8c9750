// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Processes with the emulator that end in all kinds of ways: they end as they would without it, and report.
#include <infiniband/verbs.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "provider/emulator/emulator.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/emulated_child.hpp"
#include "tests/unit/provider/kernel_page.hpp"

using namespace dapple::provider;

namespace {

std::atomic<bool> clock_is_set_back;

}  // namespace

// Takes the place of the C library's. The clock of the day is set back by a day after each look at it, if the test says
// so.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME && clock_is_set_back) time->tv_sec += 86'400;
  return result;
}

namespace {

int num_reports() {
  int count = 0;
  for (const char* at = said; (at = strstr(at, "syncs moved")) != nullptr; ++at) ++count;
  return count;
}

void exit_in_handler(int) {
  exit(0);
}

void* register_for_ever(void* offset) {
  for (;;) Emulator::running()->deregistered(register_memory(reinterpret_cast<uintptr_t>(offset), 3 * 4096));
}

void exit_beside_threads_that_register() {
  pthread_t thread;
  for (size_t i = 0; i < 4; ++i) {
    if (pthread_create(&thread, nullptr, register_for_ever, reinterpret_cast<void*>(i * 65536)) != 0) _exit(103);
  }
  for (int i = 0; i < 20; ++i) register_memory(524288, 16384);
  usleep(5000);
  exit(0);
}

void exit__beside_threads_that_register(void**) {
  for (int i = 0; i < 20; ++i) {
    assert_int_equal(status_of(exit_beside_threads_that_register), 0);
    assert_int_equal(num_reports(), 1);
  }
}

void sync_until_a_handler_exits() {
  register_memory(0, kLength);
  signal(SIGVTALRM, exit_in_handler);
  const itimerval soon = {{0, 0}, {0, 20'000}};
  setitimer(ITIMER_VIRTUAL, &soon, nullptr);
  for (;;) Emulator::running()->shadow().clean(reinterpret_cast<uintptr_t>(memory), kLength);
}

void exit__in_a_handler_during_a_sync(void**) {
  for (int i = 0; i < 5; ++i) {
    assert_int_equal(status_of(sync_until_a_handler_exits), 0);
    assert_int_equal(num_reports(), 1);
  }
}

// The sync itself faults, as the instruction would.
void exit_in_handler_of_the_syncs_own_fault() {
  register_memory(0, kLength);
  signal(SIGSEGV, exit_in_handler);
  munmap(memory + 2 * kKernelPage, kKernelPage);
  Emulator::running()->shadow().clean(reinterpret_cast<uintptr_t>(memory), kLength);
}

void exit__in_a_handler_of_the_syncs_own_fault(void**) {
  assert_int_equal(status_of(exit_in_handler_of_the_syncs_own_fault), 0);
  assert_int_equal(num_reports(), 1);
}

std::atomic<bool> holds;

// Faults in a sync, and stays there with the emulator's lock, as a thread that waits for a lock of malloc().
void* hold_the_lock(void*) {
  munmap(memory + 2 * kKernelPage, kKernelPage);
  Emulator::running()->shadow().clean(reinterpret_cast<uintptr_t>(memory), kLength);
  return nullptr;
}

void begin_to_hold_the_lock() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a handler that hangs gets no other signal
  register_memory(0, kLength);
  const auto stay = [](int) {
    holds = true;
    for (;;) pause();
  };
  signal(SIGSEGV, stay);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, hold_the_lock, nullptr) != 0) _exit(103);
  while (!holds) usleep(100);
}

void signal__ends_beside_a_thread_that_holds_the_lock(void**) {
  int status = status_of([] {
    begin_to_hold_the_lock();
    raise(SIGTERM);
  });
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  assert_non_null(strstr(said, "the regions are not reported"));
  status = status_of([] {
    begin_to_hold_the_lock();
    signal(SIGTERM, exit_in_handler);
    raise(SIGTERM);
  });
  assert_int_equal(status, 0);
  assert_non_null(strstr(said, "the regions are not reported"));
#ifndef __SANITIZE_THREAD__  // there the wait is by this clock
  status = status_of([] {
    begin_to_hold_the_lock();
    clock_is_set_back = true;
    raise(SIGTERM);
  });
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  assert_non_null(strstr(said, "the regions are not reported"));
#endif
}

template <int kNumber>
void be_ended() {
  auto* region = static_cast<ShadowRegion*>(register_memory(0, kLength));
  region->view[100] = 1;
  raise(kNumber);
}

void signal__reports_and_ends(void**) {
  int status = status_of(be_ended<SIGTERM>);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  assert_int_equal(num_reports(), 1);
  assert_non_null(strstr(said, "1 lines that the device changed were never synced, the first at offset 64\n"));
  status = status_of(be_ended<SIGINT>);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
  assert_int_equal(num_reports(), 1);
}

void end_by_quick_exit() {
  quick_exit(7);
}

void quick_exit__reports(void**) {
  const int status = status_of(end_by_quick_exit);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  assert_int_equal(num_reports(), 1);
}

void ignore_sigterm() {
  signal(SIGTERM, SIG_IGN);
  start();
  raise(SIGTERM);
  exit(0);
}

void signal__the_programs_own_way_stays(void**) {
  const int file = memfd_create("said", 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(file, STDERR_FILENO);
    ignore_sigterm();
  }
  int status = -1;
  waitpid(child, &status, 0);
  close(file);
  assert_int_equal(status, 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(exit__beside_threads_that_register),
      cmocka_unit_test(exit__in_a_handler_during_a_sync),
      cmocka_unit_test(exit__in_a_handler_of_the_syncs_own_fault),
      cmocka_unit_test(signal__ends_beside_a_thread_that_holds_the_lock),
      cmocka_unit_test(signal__reports_and_ends),
      cmocka_unit_test(quick_exit__reports),
      cmocka_unit_test(signal__the_programs_own_way_stays),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
