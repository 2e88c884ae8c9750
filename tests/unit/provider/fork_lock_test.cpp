// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A fork while a thread holds a lock of the program's and wants ours, in a program that handles its lock at forks as
// well.
#include "provider/overlay/fork_lock.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "tests/task_state.h"
#include "tests/unit/provider/cmocka.hpp"

namespace {

pthread_mutex_t programs = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> held;
std::atomic<bool> forking;
std::atomic<bool> forked;

void before_fork() {
  forking = true;
  pthread_mutex_lock(&programs);
}
void after_fork() {
  pthread_mutex_unlock(&programs);
  forked = true;
}

void* hold_then_write(void*) {
  pthread_mutex_lock(&programs);
  held = true;
  while (!forking) usleep(100);
  { const dapple::provider::WriteLock ours; }
  pthread_mutex_unlock(&programs);
  while (!forked) usleep(100);  // a thread that ended before the fork looks like a leak in the child
  return nullptr;
}

void fork__takes_the_locks_of_programs_first(void**) {
  // A program may register its handlers late; our library registers its own from the start.
  assert_int_equal(pthread_atfork(before_fork, after_fork, after_fork), 0);
  assert_true(dapple::provider::prepare_for_forks());
  pthread_t holder;
  assert_int_equal(pthread_create(&holder, nullptr, hold_then_write, nullptr), 0);
  while (!held) usleep(100);
  alarm(20);  // ends this process if the two wait for each other
  const pid_t child = fork();
  if (child == 0) {
    { const dapple::provider::WriteLock ours; }
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(pthread_join(holder, nullptr), 0);
}

std::atomic<bool> wrote;
std::atomic<bool> wrote_before_second_reader;

void* write_once(void* task) {
  *static_cast<std::atomic<pid_t>*>(task) = gettid();
  const dapple::provider::WriteLock ours;
  wrote = true;
  return nullptr;
}

void* read_once(void* task) {
  *static_cast<std::atomic<pid_t>*>(task) = gettid();
  const dapple::provider::ReadLock ours;
  wrote_before_second_reader = wrote.load();
  return nullptr;
}

// Starts a thread and waits until it sleeps, or until it has ended although it should wait.
pthread_t start_and_wait(void* (*run)(void*)) {
  static std::atomic<pid_t> task;
  pthread_t thread;
  task = 0;
  assert_int_equal(pthread_create(&thread, nullptr, run, &task), 0);
  while (task == 0 || task_state(task) == 'R') usleep(100);
  return thread;
}

void writer__comes_before_later_readers(void**) {
  pthread_t writer;
  pthread_t reader;
  alarm(20);
  {
    const dapple::provider::ReadLock first;
    writer = start_and_wait(write_once);
    reader = start_and_wait(read_once);
    assert_false(wrote);
  }
  assert_int_equal(pthread_join(writer, nullptr), 0);
  assert_int_equal(pthread_join(reader, nullptr), 0);
  assert_true(wrote_before_second_reader);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(fork__takes_the_locks_of_programs_first),
                              cmocka_unit_test(writer__comes_before_later_readers)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
