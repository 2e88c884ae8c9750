// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled inherits the hard limit of open files from the program that starts it. A program that may open more files
// replaces a dappled that lacks descriptors.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "provider/member/daemon_link.hpp"
#include "tests/native/dappled/member.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using dapple::tests::status_of;

namespace {

constexpr rlim_t kFew = 48;
constexpr rlim_t kMany = 1024;
constexpr int kMax = 40;

struct Outcome {
  int error = 0;
  char line[240] = "";
};

// A program with a slot, which it keeps through changes of dappled.
struct Program {
  pid_t process = -1;
  int from = -1;

  [[noreturn]] static void live(rlim_t files, int to) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit limit = {files, files};
    Problem problem;
    Slot slot;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(1);
    const auto own = DaemonLink::open(problem);
    Outcome outcome;
    if (own == nullptr || !own->slot(slot, problem)) {
      outcome.error = problem.error;
      memcpy(outcome.line, problem.line, sizeof outcome.line);
    }
    for (;;) {
      if (write(to, &outcome, sizeof outcome) < 0 || outcome.error != 0) _exit(0);
      pollfd gone = {own->fd(), POLLRDHUP, 0};
      while (poll(&gone, 1, gone.fd < 0 ? 100 : -1) < 0) {
      }
      outcome = {};
      if (own->check(problem)) continue;
      outcome.error = problem.error;
      memcpy(outcome.line, problem.line, sizeof outcome.line);
    }
  }

  bool start(rlim_t files, Outcome& outcome) { return launch(files) && next(outcome); }
  bool launch(rlim_t files) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    process = fork();
    if (process == 0) {
      close(ends[0]);
      live(files, ends[1]);
    }
    close(ends[1]);
    from = ends[0];
    return process > 0;
  }
  bool next(Outcome& outcome) const {
    pollfd waiting = {from, POLLIN, 0};
    return poll(&waiting, 1, 30000) > 0 && read(from, &outcome, sizeof outcome) == sizeof outcome;
  }
  void end() {
    if (process > 0) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
      close(from);
    }
    process = -1;
  }
};

Program programs[kMax];
Outcome outcomes[kMax];
std::unique_ptr<DaemonLink> link;  // the test's own

int end_all(void**) {
  link.reset();
  for (Program& program : programs) program.end();
  return tests::ends_soon() ? 0 : 1;
}

// Waits until a dappled with this limit serves this number of programs. Each look has a connection of its own, because
// dappled may be replaced at any time until then.
bool serves_soon(uint32_t count, rlim_t limit) {
  for (int i = 0; i < 1000; i++) {
    Problem problem;
    StatusReply status;
    const auto asker = DaemonLink::open(problem, DaemonLink::Start::kNever);
    if (asker != nullptr && asker->status(status, problem) && status.slots_in_use >= count) {
      rlimit present = {};
      prlimit(static_cast<pid_t>(status.process), RLIMIT_NOFILE, nullptr, &present);
      if (present.rlim_max == limit) return true;
    }
    usleep(10000);
  }
  return false;
}

void dappled__started_by_a_limited_program__is_replaced(void**) {
  for (int i = 0; i < kMax; i++) {
    assert_true(programs[i].start(i == 0 ? kFew : kMany, outcomes[i]));
    if (outcomes[i].error != 0) fprintf(stderr, "%d: %s\n", i, outcomes[i].line);
    assert_int_equal(outcomes[i].error, 0);
  }
  // The first program announces its slot to the next dappled.
  assert_true(programs[0].next(outcomes[0]));
  assert_int_equal(outcomes[0].error, 0);
  assert_true(serves_soon(kMax, kMany));
}

// It cannot even keep the connection of the dappled that asks for its name.
void dappled__without_a_descriptor_left__is_replaced(void**) {
  assert_true(programs[0].start(kFew, outcomes[0]));
  assert_int_equal(outcomes[0].error, 0);
  std::vector<std::unique_ptr<DaemonLink>> others;
  Problem problem;
  for (DeviceList list; problem.error == 0 && others.size() < kFew;) {
    others.push_back(DaemonLink::open(problem, DaemonLink::Start::kNever));
    if (others.back() != nullptr && !others.back()->devices(list, problem)) others.pop_back();
  }
  assert_int_equal(problem.error, EMFILE);
  assert_true(programs[1].start(kMany, outcomes[1]));
  if (outcomes[1].error != 0) fprintf(stderr, "%s\n", outcomes[1].line);
  assert_int_equal(outcomes[1].error, 0);
  others.clear();
  assert_true(serves_soon(2, kMany));
}

void dappled__all_programs_are_limited__the_line_names_the_limit(void**) {
  int refused = -1;
  for (int i = 0; i < kMax && refused < 0; i++) {
    assert_true(programs[i].start(kFew, outcomes[i]));
    if (outcomes[i].error != 0) refused = i;
  }
  assert_true(refused > 1);
  assert_int_equal(outcomes[refused].error, EMFILE);
  char limit[40], starter[40];
  snprintf(limit, sizeof limit, "may open only %u files", static_cast<unsigned>(kFew));
  snprintf(starter, sizeof starter, "process %d (", programs[0].process);
  assert_non_null(strstr(outcomes[refused].line, limit));
  assert_non_null(strstr(outcomes[refused].line, starter));
  assert_non_null(strstr(outcomes[refused].line, "ulimit -Hn"));
}

// The next dappled may be started by any of the programs.
void dappled__dies_and_a_limited_program_starts_the_next__is_replaced(void**) {
  constexpr int kPrograms = 30;
  for (int i = 0; i < kPrograms; i++) {
    assert_true(programs[i].start(kMany, outcomes[i]));
    assert_int_equal(outcomes[i].error, 0);
  }
  for (int i = 0; i < kPrograms; i++) kill(programs[i].process, SIGSTOP);
  Problem problem;
  link = DaemonLink::open(problem, DaemonLink::Start::kNever);
  assert_non_null(link.get());
  kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
  link.reset();
  assert_true(programs[kPrograms].launch(kFew));
  assert_true(serves_soon(0, kFew));
  for (int i = 0; i < kPrograms; i++) kill(programs[i].process, SIGCONT);
  for (int i = 0; i < kPrograms; i++) {
    assert_true(programs[i].next(outcomes[i]));
    if (outcomes[i].error != 0) fprintf(stderr, "%d: %s\n", i, outcomes[i].line);
    assert_int_equal(outcomes[i].error, 0);
  }
  assert_true(serves_soon(kPrograms, kMany));
}

}  // namespace

int main() {
  // Root's dappled raises its limit. Descriptors in queues count for all programs of a user, so this user has no
  // others.
  const auto user = static_cast<uid_t>(60000 + getpid() % 4000);
  if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(user) != 0 || setuid(user) != 0)) {
    tests::skip_program("no other user can be had: ", strerror(errno));
  }
  prctl(PR_SET_DUMPABLE, 1);  // for the maps of user namespaces
  if (const char* dappled = getenv("DAPPLE_DAPPLED"); dappled != nullptr && access(dappled, X_OK) != 0) {
    tests::skip_program("an unprivileged user cannot run ", dappled);
  }
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test_teardown(dappled__started_by_a_limited_program__is_replaced, end_all),
      cmocka_unit_test_teardown(dappled__without_a_descriptor_left__is_replaced, end_all),
      cmocka_unit_test_teardown(dappled__all_programs_are_limited__the_line_names_the_limit, end_all),
      cmocka_unit_test_teardown(dappled__dies_and_a_limited_program_starts_the_next__is_replaced, end_all),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
