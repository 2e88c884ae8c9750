// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/doors/rdma_cm_rig.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/native/namespaces.hpp"
#include "tests/task_state.h"

namespace dapple::tests {

FakeState* state;

bool prepare_fake_dappled() {
  need_new_namespace();
  char path[] = "/tmp/fake-dappled.XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, sizeof(FakeState)) != 0) return false;
  void* page = mmap(nullptr, sizeof(FakeState), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  // A file with a name would remain after a crash.
  unlink(path);
  static char link[64];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", getpid(), file);
  setenv("FAKE_DAPPLED_STATE", link, 1);
  state = static_cast<FakeState*>(page);
  return page != MAP_FAILED;
}

void nap(long milliseconds) {
  const timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

int open_channel(int flags) {
  const int fd = open(kPath, O_RDWR | O_CLOEXEC | flags);
  assert_true(fd >= 0);
  return fd;
}

ssize_t create(int fd, uint32_t& id) {
  rdma_ucm_create_id_resp response = {};
  const ssize_t size = ask(fd, RDMA_USER_CM_CMD_CREATE_ID, rdma_ucm_create_id{}, response);
  id = response.id;
  return size;
}

bool works(int fd) {
  uint32_t id = 0;
  return create(fd, id) == sizeof(Command<rdma_ucm_create_id>) && id != 0;
}

ssize_t get_event(int fd, rdma_ucm_event_resp& event) {
  return ask(fd, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event);
}

bool readable(int fd) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

int last_channel() {
  return state->opens - 1;
}

void post(int channel) {
  state->post_to = channel + 1;
  assert_true(soon([] { return state->post_to == 0; }));
}

Waiter::Waiter(int on) : fd(on) {
  pthread_create(
      &thread, nullptr,
      [](void* me) -> void* {
        auto* waiter = static_cast<Waiter*>(me);
        waiter->task = gettid();
        errno = 0;
        waiter->result = get_event(waiter->fd, waiter->event);
        waiter->error = errno;
        waiter->done = true;
        return nullptr;
      },
      this);
  assert_true(soon([this] { return task_state(task) == 'S'; }));
}

void* Waiter::join() {
  void* value = nullptr;
  pthread_join(thread, &value);
  return value;
}

int exit_code(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace dapple::tests
