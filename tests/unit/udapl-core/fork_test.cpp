// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Forks of a program that has loaded the provider, without a device: calls take the provider's locks, and fail.
#include <dat2/udat.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/fork_in_handler.hpp"
#include "tests/unit/udapl-registry/scratch.hpp"

namespace {

/// dat.conf with an entry whose network device every machine has, and which no RDMA device serves.
struct Conf {
  TemporaryFolder folder;
  Conf() {
    const std::string path = folder.write(
        "dat.conf", std::string("here u2.0 nonthreadsafe default ") + LIBDAPLOFA + " dapl.2.0 \"lo 0\" \"\"\n");
    ::setenv("DAT_OVERRIDE", path.c_str(), 1);
    ::setenv("DAPL_DBG_TYPE", "0", 1);
  }
};

DAT_RETURN open_here() {
  char name[] = "here";
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  const DAT_RETURN status = dat_ia_open(name, 8, &async, &ia);
  if (status == DAT_SUCCESS) (void)dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
  return status;
}

void fork__in_a_signal_handler_of_a_control_call() {
  const Conf conf;
  ::alarm(60);
  (void)open_here();
  struct sigaction action {};
  action.sa_handler = fork_in_a_handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, 2000}, {0, 2000}};
  ::setitimer(ITIMER_PROF, &often, nullptr);
  while (forks_in_handlers < 200) (void)open_here();
  const itimerval never{};
  ::setitimer(ITIMER_PROF, &never, nullptr);
}

void fork__child_of_a_process_without_an_ia_is_as_good() {
  const Conf conf;
  const DAT_RETURN expected = open_here();
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(open_here() == expected ? 0 : 1);
    }
    int status = -1;
    CHECK_EQUAL(::waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
  }
}

/// Whatever the other thread does, the child gets an answer, and the fork does not wait for that thread.
void fork__beside_a_thread_that_opens() {
  const Conf conf;
  const DAT_RETURN expected = open_here();
  std::atomic<bool> stop = false;
  std::thread opener([&] {
    while (!stop) (void)open_here();
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      const DAT_RETURN status = open_here();
      ::_exit(status == expected || DAT_GET_TYPE(status) == DAT_INVALID_STATE ? 0 : 1);
    }
    int status = -1;
    CHECK_EQUAL(::waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
  }
  stop = true;
  opener.join();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(fork__in_a_signal_handler_of_a_control_call),
      TEST_IN_CHILD(fork__child_of_a_process_without_an_ia_is_as_good),
      TEST_IN_CHILD(fork__beside_a_thread_that_opens),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
