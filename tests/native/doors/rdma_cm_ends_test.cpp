// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The door of rdma_cm beside a fake dappled: close, fork, and the end of dappled.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/native/doors/rdma_cm_rig.hpp"
#include "tests/task_state.h"

using namespace dapple::tests;

namespace {

void close__of_the_last_copy_ends_the_channel(void**) {
  const int fd = open_channel();
  const int before = state->hangups;
  const int copy = dup(fd);
  close(fd);
  nap(20);
  assert_true(works(copy));
  assert_int_equal(state->hangups, before);
  close(copy);
  assert_true(soon([before] { return state->hangups == before + 1; }));
  errno = 0;
  assert_int_equal(write(copy, "", 1), -1);
  assert_int_equal(errno, EBADF);
}

// The same as on the kernel: rping's thread waits while its main thread closes the channel and ends the program
// successfully.
void close__by_another_thread_does_not_wake_a_wait(void**) {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const int fd = open_channel();
  Waiter waiter(fd);
  close(fd);
  nap(30);
  assert_true(waiter.waits());
  // dappled learns that the channel is closed, or an event arrives for nobody.
  post(last_channel());
  nap(30);
  assert_true(waiter.waits());
  pthread_kill(waiter.thread, SIGUSR1);
  waiter.join();
  assert_int_equal(waiter.result, -1);
  assert_int_equal(waiter.error, EINTR);
}

void close__behind_our_back_is_noticed(void**) {
  const int fd = open_channel();
  const int before = state->hangups;
  syscall(SYS_close, fd);
  assert_true(soon([before] { return state->hangups == before + 1; }));
  assert_int_equal(open_channel(), fd);
  assert_true(works(fd));
  close(fd);
}

void close_range__leaves_the_channel_working(void**) {
  const int fd = open_channel();
  assert_int_equal(dup2(fd, 200), 200);
  close_range(3, 199, 0);
  for (int i = 201; i < 70000; i++) close(i);
  close_range(201, UINT_MAX, 0);
  assert_true(works(200));
  const int before = state->hangups;
  closefrom(3);
  assert_true(soon([before] { return state->hangups == before + 1; }));
}

void fork__a_child_has_a_connection_of_its_own(void**) {
  const int fd = open_channel();
  assert_true(works(fd));
  const int connections = state->connections;
  const int restores = state->restores;
  const int hangups = state->hangups;
  pid_t child = fork();
  if (child == 0) _exit(works(fd) && close(fd) == 0 ? 0 : 1);
  assert_int_equal(exit_code(child), 0);
  assert_int_equal(state->connections, connections + 1);
  assert_int_equal(state->restores, restores);
  assert_int_equal(state->hangups, hangups);
  assert_true(works(fd));
  // Only the child has the channel.
  child = fork();
  if (child == 0) {
    rdma_ucm_event_resp event;
    _exit(get_event(fd, event) > 0 && works(fd) ? 0 : 1);
  }
  const int channel = last_channel();
  close(fd);
  nap(50);
  assert_int_equal(state->hangups, hangups);
  post(channel);
  assert_int_equal(exit_code(child), 0);
  assert_true(soon([hangups] { return state->hangups == hangups + 1; }));
}

// dappled does not answer while a thread asks for a device, and the thread is cancelled. It must not keep the locks.
void cancel__of_a_question_about_devices_leaves_no_lock_held(void**) {
  const int fd = open_channel();
  kill(state->process, SIGSTOP);
  pthread_t thread;
  std::atomic<pid_t> task = 0;
  const auto ask_for_a_device = [](void* its_task) -> void* {
    *static_cast<std::atomic<pid_t>*>(its_task) = gettid();
    struct stat status;
    stat("/dev/infiniband/uverbs4096", &status);
    pthread_testcancel();
    return nullptr;
  };
  assert_int_equal(pthread_create(&thread, nullptr, ask_for_a_device, &task), 0);
  assert_true(soon([&task] { return task_state(task) == 'S'; }));
  pthread_cancel(thread);
  nap(50);
  kill(state->process, SIGCONT);
  void* result = nullptr;
  pthread_join(thread, &result);
  assert_ptr_equal(result, PTHREAD_CANCELED);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  assert_int_equal(exit_code(child), 0);
  assert_true(works(fd));
  close(fd);
}

// A system call made the child, so the library does not know of it.
void clone__a_child_is_refused(void**) {
  const int fd = open_channel();
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    uint32_t id = 0;
    const bool is_refused = create(fd, id) == -1 && errno == EACCES;
    // The number may then be an ordinary file's.
    syscall(SYS_close, fd);
    const bool is_file = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY) == fd && write(fd, "x", 1) == 1;
    syscall(SYS_exit_group, is_refused && is_file ? 0 : 1);
  }
  assert_int_equal(exit_code(child), 0);
  assert_true(works(fd));
  close(fd);
}

void fork__exec_closes_the_channel(void**) {
  const int fd = open_channel();
  const int hangups = state->hangups;
  const pid_t child = fork();
  if (child == 0) {
    execlp("sleep", "sleep", "30", nullptr);
    _exit(1);
  }
  nap(100);
  close(fd);
  assert_true(soon([hangups] { return state->hangups == hangups + 1; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

void vfork__a_child_may_close_everything(void**) {
  const int fd = open_channel();
  const pid_t child = vfork();
  if (child == 0) {
    for (int i = 3; i < 2000; i++) close(i);
    execlp("true", "true", nullptr);
    _exit(1);
  }
  assert_int_equal(exit_code(child), 0);
  assert_true(works(fd));
  close(fd);
}

void death__the_next_dappled_gets_the_channels(void**) {
  const int fd = open_channel();
  const int first = last_channel();
  const int other = open_channel(O_NONBLOCK);
  Waiter waiter(fd);
  const int starts = state->starts;
  const int restores = state->restores;
  kill(state->process, SIGKILL);
  // No thread of the program sends a command meanwhile.
  assert_true(soon([=] { return state->starts == starts + 1 && state->restores == restores + 2; }));
  assert_true(waiter.waits());
  assert_true(works(other));
  assert_int_equal(state->channel.number, first + 1);
  post(first);
  waiter.join();
  assert_true(waiter.result > 0);
  assert_int_equal(waiter.event.id, first);
  close(fd);
  close(other);
}

void death__a_command_is_asked_again(void**) {
  const int fd = open_channel();
  const int starts = state->starts;
  const int commands = state->commands;
  state->die = 1;
  assert_true(works(fd));
  assert_int_equal(state->starts, starts + 1);
  assert_int_equal(state->commands, commands + 2);
  // The id was destroyed with the first channel.
  state->die = 1;
  state->fail = ENOENT;
  rdma_ucm_destroy_id_resp response = {77};
  assert_true(ask(fd, RDMA_USER_CM_CMD_DESTROY_ID, rdma_ucm_destroy_id{}, response) > 0);
  assert_int_equal(response.events_reported, 0);
  close(fd);
}

void death__in_a_child_alone_with_the_channel(void**) {
  const int fd = open_channel();
  const int channel = last_channel();
  const int restores = state->restores;
  const pid_t child = fork();
  if (child == 0) {
    rdma_ucm_event_resp event;
    _exit(get_event(fd, event) > 0 ? 0 : 1);
  }
  close(fd);
  nap(50);
  kill(state->process, SIGKILL);
  assert_true(soon([=] { return state->restores == restores + 1; }));
  post(channel);
  assert_int_equal(exit_code(child), 0);
}

void death__a_channel_that_is_refused_ends(void**) {
  const int fd = open_channel();
  Waiter waiter(fd);
  state->refuse_restore = EINVAL;
  kill(state->process, SIGKILL);
  waiter.join();
  assert_int_equal(waiter.result, -1);
  assert_int_equal(waiter.error, ENODEV);
  assert_false(works(fd));
  close(fd);
  const int next = open_channel();
  assert_true(works(next));
  close(next);
}

void death__a_channel_for_which_memory_lacks_comes_again(void**) {
  const int fd = open_channel();
  assert_true(works(fd));
  const int restores = state->restores;
  state->refuse_restore = ENOMEM;
  kill(state->process, SIGKILL);
  assert_true(soon([=] { return state->restores == restores + 1; }));
  assert_true(works(fd));
  close(fd);
}

void version__another_one_is_one_line(void**) {
  const int fd = open_channel();
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  state->other_version = 1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    const bool refused = !works(fd) && errno == EPROTO && !works(fd) && open(kPath, O_RDWR | O_CLOEXEC) < 0;
    _exit(refused ? 0 : 1);
  }
  close(ends[1]);
  assert_int_equal(exit_code(child), 0);
  char text[1000] = "";
  size_t size = 0;
  ssize_t got;
  while ((got = read(ends[0], text + size, sizeof text - 1 - size)) > 0) size += static_cast<size_t>(got);
  assert_string_equal(
      text,
      "dapple: no software device: dappled has another release; end the programs that use dappled and start again\n");
  state->other_version = 0;
  close(ends[0]);
  close(fd);
}

}  // namespace

int main() {
  if (!prepare_fake_dappled()) return 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(close__of_the_last_copy_ends_the_channel),
      cmocka_unit_test(close__by_another_thread_does_not_wake_a_wait),
      cmocka_unit_test(close__behind_our_back_is_noticed),
      cmocka_unit_test(fork__a_child_has_a_connection_of_its_own),
      cmocka_unit_test(cancel__of_a_question_about_devices_leaves_no_lock_held),
      cmocka_unit_test(clone__a_child_is_refused),
      cmocka_unit_test(fork__exec_closes_the_channel),
      cmocka_unit_test(vfork__a_child_may_close_everything),
      cmocka_unit_test(death__the_next_dappled_gets_the_channels),
      cmocka_unit_test(death__a_command_is_asked_again),
      cmocka_unit_test(death__in_a_child_alone_with_the_channel),
      cmocka_unit_test(death__a_channel_that_is_refused_ends),
      cmocka_unit_test(death__a_channel_for_which_memory_lacks_comes_again),
      cmocka_unit_test(version__another_one_is_one_line),
      // This comes last: it closes everything.
      cmocka_unit_test(close_range__leaves_the_channel_working),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
