// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A fault in a thread of the device reaches the program's handler, and no other signal of the program comes there. Runs
// under dapple-run.
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGTRAP, SIGILL, SIGFPE, SIGSYS};
constexpr int kMilliseconds = 5000;

std::atomic<int> handled{0};

void handle(int number, siginfo_t*, void*) {
  handled.store(number);
}

// The threads that the device has started.
std::vector<int> other_threads() {
  std::vector<int> threads;
  DIR* folder = opendir("/proc/self/task");
  assert_non_null(folder);
  while (const dirent* entry = readdir(folder)) {
    const int thread = atoi(entry->d_name);
    if (thread > 0 && thread != getpid()) threads.push_back(thread);
  }
  closedir(folder);
  return threads;
}

int begin_pair(void**) {
  return begin({}) ? 0 : -1;
}

// In the test itself: cmocka has handlers of its own before.
void handle_all() {
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  for (const int number : kFaults) sigaction(number, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}

bool reaches(int thread, int number) {
  handled.store(0);
  if (syscall(SYS_tgkill, getpid(), thread, number) != 0) return false;
  for (int i = 0; i < kMilliseconds && handled.load() == 0; i++) usleep(1000);
  return handled.load() == number;
}

void fault__in_a_thread_of_the_device__reaches_the_handler(void**) {
  handle_all();
  const std::vector<int> threads = other_threads();
  assert_true(threads.size() >= 1);
  int lasting = 0;
  for (const int thread : threads) {
    // A thread may have ended since the list was made.
    if (syscall(SYS_tgkill, getpid(), thread, 0) != 0) continue;
    bool reached = true;
    for (const int number : kFaults) reached = reached && reaches(thread, number);
    // Or it has ended meanwhile.
    assert_true(reached || syscall(SYS_tgkill, getpid(), thread, 0) != 0);
    lasting += reached ? 1 : 0;
  }
  assert_true(lasting >= 1);
}

void other_signal__for_a_thread_of_the_device__waits(void**) {
  handle_all();
  handled.store(0);
  for (const int thread : other_threads()) syscall(SYS_tgkill, getpid(), thread, SIGUSR1);
  usleep(100'000);
  assert_int_equal(handled.load(), 0);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(fault__in_a_thread_of_the_device__reaches_the_handler, begin_pair, finish),
      cmocka_unit_test_setup_teardown(other_signal__for_a_thread_of_the_device__waits, begin_pair, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
