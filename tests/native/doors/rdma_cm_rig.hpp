// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The rig of tests for rdma_cm's door with a fake dappled. They run under dapple-run, with DAPPLE_DAPPLED=fake-dappled.
#pragma once

#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

#include "tests/native/doors/fake_dappled.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

inline constexpr char kPath[] = "/dev/infiniband/rdma_cm";

// Shared with the fake dappled.
extern FakeState* state;

// Enters a network namespace of the test's own and makes `state`.
bool prepare_fake_dappled();

void nap(long milliseconds);

// Waits up to half a minute.
template <class Condition>
bool soon(Condition condition) {
  for (int i = 0; i < 15000; i++) {
    if (condition()) return true;
    nap(2);
  }
  return false;
}

template <class Struct>
struct Command {
  rdma_ucm_cmd_hdr header;
  Struct body;
};

// A command whose response goes to `response`.
template <class Struct, class Response>
ssize_t ask(int fd, uint32_t number, Struct body, Response& response) {
  body.response = reinterpret_cast<uintptr_t>(&response);
  Command<Struct> command = {{number, sizeof body, sizeof response}, body};
  return write(fd, &command, sizeof command);
}

int open_channel(int flags = 0);
ssize_t create(int fd, uint32_t& id);
bool works(int fd);
ssize_t get_event(int fd, rdma_ucm_event_resp& event);
bool readable(int fd);

// The number of the channel that was opened last.
int last_channel();
// Makes dappled post an event to a channel, and waits until it has.
void post(int channel);

// A thread in a blocking GET_EVENT.
struct Waiter {
  int fd;
  std::atomic<pid_t> task = 0;
  std::atomic<bool> done = false;
  ssize_t result = 0;
  int error = 0;
  rdma_ucm_event_resp event = {};
  pthread_t thread = {};

  // Returns when the thread sleeps.
  explicit Waiter(int on);
  bool waits() const { return !done; }
  void* join();
};

// The exit code; -1 if the process did not exit.
int exit_code(pid_t child);

}  // namespace dapple::tests
