// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel counts descriptors in socket queues over all processes of a user, in all namespaces: this test runs 40
// dappleds of one user who may have 1,024 open files.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provider/member/daemon_link.hpp"
#include "provider/protocol/unix_message.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

constexpr int kDaemons = 40;
int told[2], hold[2];
int errors;

struct Outcome {
  int error;
  char line[240];
};

// A program in a network namespace of its own. It keeps its slot until the test releases it.
void live(rlim_t files) {
  const rlimit limit = {files, files};
  Outcome outcome = {};
  Problem problem;
  close(hold[1]);
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || !tests::enter_new_namespace()) _exit(77);
  const auto link = DaemonLink::open(problem);
  Slot slot;
  if (link == nullptr || !link->slot(slot, problem)) {
    outcome.error = problem.error;
    memcpy(outcome.line, problem.line, sizeof outcome.line);
  }
  if (write(told[1], &outcome, sizeof outcome) < 0) _exit(1);
  char byte;
  while (read(hold[0], &byte, 1) < 0 && errno == EINTR) {
  }
  _exit(0);
}

void start(rlim_t files) {
  if (fork() == 0) live(files);
}

bool next(Outcome& outcome) {
  pollfd waiting = {told[0], POLLIN, 0};
  return poll(&waiting, 1, 60000) > 0 && read(told[0], &outcome, sizeof outcome) == sizeof outcome;
}

// For all tests. They stay until the end, so that the user has 40 times 8 descriptors in queues.
int start_forty(void**) {
  for (int i = 0; i < kDaemons; i++) start(1024);
  for (int i = 0; i < kDaemons; i++) {
    Outcome outcome;
    if (!next(outcome)) return 1;
    if (outcome.error != 0) errors++;
    if (outcome.error != 0) fprintf(stderr, "%s\n", outcome.line);
  }
  return 0;
}

void dappled__forty_of_one_user__all_work(void**) {
  assert_int_equal(errors, 0);
  // Another program of the user passes a descriptor.
  const rlimit limit = {1024, 1024};
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const int passed = 0;
  const std::byte byte{};
  assert_int_equal(send_message(pair[0], {&byte, 1}, {&passed, 1}), 0);
}

void dappled__too_many_descriptors__is_told(void**) {
  start(100);
  Outcome outcome;
  assert_true(next(outcome));
  assert_int_equal(outcome.error, ETOOMANYREFS);
  assert_non_null(strstr(outcome.line, "ulimit -Hn"));
}

}  // namespace

int main() {
  // The limit does not apply to root. A user namespace's root is not exempt.
  if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0)) {
    tests::skip_program("no other user can be had: ", strerror(errno));
  }
  prctl(PR_SET_DUMPABLE, 1);  // for the maps of user namespaces
  const pid_t trial = fork();
  if (trial == 0) _exit(tests::enter_new_namespace() ? 0 : 1);
  int status = 0;
  waitpid(trial, &status, 0);
  if (status != 0) tests::skip_program("no network namespace can be made by an unprivileged user");
  if (const char* dappled = getenv("DAPPLE_DAPPLED"); dappled != nullptr && access(dappled, X_OK) != 0) {
    tests::skip_program("an unprivileged user cannot run ", dappled);
  }
  if (pipe2(told, O_CLOEXEC) != 0 || pipe2(hold, O_CLOEXEC) != 0) return 1;
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__forty_of_one_user__all_work),
      cmocka_unit_test(dappled__too_many_descriptors__is_told),
  };
  const int failed = cmocka_run_group_tests(all, start_forty, nullptr);
  close(hold[1]);
  while (wait(nullptr) > 0 || errno == EINTR) {
  }
  return failed;
}
