// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled's start and end, and a port that it does not get.
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "provider/common/settings.hpp"
#include "provider/member/daemon_link.hpp"
#include "tests/native/clock.hpp"
#include "tests/native/dappled/member.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using dapple::tests::status_of;

namespace {

const char* program_name;
constexpr rlim_t kLimit = rlim_t{1} << 30;      // bytes of memory
constexpr rlim_t kFileLimit = rlim_t{1} << 16;  // bytes, fewer than dappled's own files have
// A sanitizer's shadow counts as memory: nothing starts below the limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadowed = true;
#else
constexpr bool kShadowed = false;
#endif

void dappled__one_program__is_quick_and_leaves_nothing(void**) {
  assert_true(tests::nothing_left());
  Problem problem;
  std::unique_ptr<DaemonLink> link;
  // The best of several times, so that other programs on the machine do not matter.
  double took = 1e9;
  for (int i = 0; i < 5 && took >= 100; i++) {
    link.reset();
    assert_true(tests::ends_soon());
    const double begin = tests::now();
    link = DaemonLink::open(problem);
    Slot slot;
    assert_true(link != nullptr && link->slot(slot, problem));
    took = (tests::now() - begin) * 1e3;
  }
  printf("started and answered after %.1f ms\n", took);
  assert_true(took < 100);
  assert_true(waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD);
  DeviceList devices;
  DeviceInfo device;
  assert_true(link->devices(devices, problem));
  assert_int_equal(devices.count, 1);
  assert_true(link->device(devices.indexes[0], device, problem));
  assert_string_equal(device.name, "dapple0");
  assert_string_equal(device.netdev, "lo");
  assert_true(device.loopback && device.up && device.guid != 0);
  assert_false(link->device(kFirstDeviceIndex + 77, device, problem));
  assert_int_equal(problem.error, ENODEV);
  link.reset();
  assert_true(tests::ends_soon());
}

void dappled__pipe_of_its_starter__is_closed(void**) {
  const std::string command = std::string("DAPPLED_LINGER=20 ") + program_name + " --member | cat >/dev/null";
  const double begin = tests::now();
  assert_true(tests::run(command.c_str()));
  assert_true(tests::now() - begin < 5);
  Problem problem;
  auto link = DaemonLink::open(problem, DaemonLink::Start::kNever);
  assert_non_null(link.get());
  const auto process = static_cast<pid_t>(status_of(*link).process);
  char path[64], folder[64] = "";
  snprintf(path, sizeof path, "/proc/%d/cwd", process);
  assert_true(readlink(path, folder, sizeof folder - 1) > 0);
  assert_string_equal(folder, "/");
  assert_int_not_equal(getsid(process), getsid(0));
  link.reset();
  kill(process, SIGTERM);
  assert_true(tests::ends_soon());
}

// A limit that a program sets for itself must not stop the others' dappled.
void dappled__started_by_a_limited_program__has_its_hard_limits(void**) {
  if (kShadowed) skip_test("the sanitizer's shadow counts as memory");
  assert_true(tests::ends_soon());
  rlimit before[3];
  constexpr __rlimit_resource kResources[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(getrlimit(kResources[i], &before[i]), 0);
    rlimit limited = before[i];
    limited.rlim_cur = kResources[i] == RLIMIT_FSIZE ? kFileLimit : kLimit;
    assert_int_equal(setrlimit(kResources[i], &limited), 0);
  }
  Slot slot;
  const auto link = tests::link_with_slot(slot);
  for (int i = 0; i < 3; i++) assert_int_equal(setrlimit(kResources[i], &before[i]), 0);
  assert_non_null(link.get());
  const auto process = static_cast<pid_t>(status_of(*link).process);
  for (int i = 0; i < 3; i++) {
    rlimit found;
    assert_int_equal(prlimit(process, kResources[i], nullptr, &found), 0);
    assert_true(found.rlim_cur == before[i].rlim_max && found.rlim_max == before[i].rlim_max);
  }
}

// As in a container whose root file system is nearly empty.
void dappled__no_dev_null__starts(void**) {
  assert_true(tests::ends_soon());
  const pid_t child = fork();
  if (child == 0) {
    const bool hidden = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                        mount("tmpfs", "/dev", "tmpfs", 0, nullptr) == 0;
    if (!hidden || access("/dev/null", F_OK) == 0) _exit(77);
    Slot slot;
    const auto link = tests::link_with_slot(slot);
    if (link == nullptr) _exit(1);
    // No socket of dappled may have one of the first descriptor numbers.
    char path[64];
    const unsigned process = status_of(*link).process;
    for (int fd = 0; fd <= 2; fd++) {
      char target[16] = "";
      snprintf(path, sizeof path, "/proc/%u/fd/%d", process, fd);
      if (readlink(path, target, sizeof target - 1) <= 0 || strcmp(target, "/") != 0) _exit(2);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 77) skip_test("/dev cannot be hidden");
  assert_int_equal(status, 0);
  assert_true(tests::ends_soon());
}

// A program asks for a slot and a channel while this process has the port. Returns the time until both are refused.
double seconds_until_refused() {
  assert_true(tests::ends_soon());
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kRocePort);
  assert_int_equal(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  Problem problem;
  auto link = DaemonLink::open(problem);
  Slot slot;
  assert_non_null(link.get());
  const double begin = tests::now();
  assert_false(link->slot(slot, problem));
  assert_int_equal(problem.error, EADDRINUSE);
  char process[32];
  snprintf(process, sizeof process, "Process %d (", getpid());
  assert_non_null(strstr(problem.line, process));
  // A channel of rdma_cm is refused as well: otherwise the program would wait without a message.
  int ends[2];
  CmChannelName name;
  OwnedFd journal;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  problem.clear();
  assert_false(link->cm_open(ends[1], name, journal, problem));
  assert_int_equal(problem.error, EADDRINUSE);
  assert_non_null(strstr(problem.line, process));
  const double took = tests::now() - begin;
  close(ends[0]);
  close(ends[1]);
  // The port is free again: the same link gets its slot.
  close(fd);
  assert_true(link->slot(slot, problem));
  return took;
}

void dappled__port_taken__is_told(void**) {
  // The best of several times, so that other programs on the machine do not matter.
  double took = 1e9;
  for (int i = 0; i < 30 && took >= 1.5; i++) took = std::min(took, seconds_until_refused());
  // dappled did not wait for members of an earlier dappled.
  assert_true(took < 1.5);
}

void dappled__port_held_by_a_ping__is_awaited(void**) {
  assert_true(tests::ends_soon());
  int ready[2];
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  const pid_t ping = fork();
  if (ping == 0) {
    prctl(PR_SET_NAME, "dapple-info");
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(kRocePort);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || write(ready[1], "r", 1) != 1) _exit(1);
    usleep(500000);
    _exit(0);
  }
  close(ready[1]);
  char byte;
  assert_int_equal(read(ready[0], &byte, 1), 1);
  Problem problem;
  auto link = DaemonLink::open(problem);
  Slot slot;
  assert_non_null(link.get());
  assert_true(link->slot(slot, problem));
  int status = 1;
  assert_int_equal(waitpid(ping, &status, 0), ping);
  assert_int_equal(status, 0);
  close(ready[0]);
}

// Opens a link where DAPPLE_DAPPLED names this program. Returns the errno, and 0 for a link.
int error_with(const char* program, Problem& problem) {
  const std::string before = getenv("DAPPLE_DAPPLED");
  setenv("DAPPLE_DAPPLED", program, 1);
  provider::read_settings_again();
  const bool opened = DaemonLink::open(problem) != nullptr;
  setenv("DAPPLE_DAPPLED", before.c_str(), 1);
  provider::read_settings_again();
  return opened ? 0 : problem.error;
}

void dappled__cannot_be_started__one_line_tells_why(void**) {
  assert_true(tests::ends_soon());
  constexpr char kMissing[] = "/no/such/dappled";
  Problem problem;
  assert_int_equal(error_with(kMissing, problem), ENOENT);
  assert_non_null(strstr(problem.line, kMissing));
  assert_null(strchr(problem.line, '\n'));
  // A file that is no program.
  problem.clear();
  assert_int_equal(error_with("/etc/passwd", problem), ENOENT);
  assert_non_null(strstr(problem.line, "/etc/passwd"));
  // One that ends at once, and counts how often it is started.
  char counted[] = "starts-XXXXXX", script[] = "script-XXXXXX";
  const int starts = mkstemp(counted), program = mkstemp(script);
  assert_true(starts >= 0 && program >= 0);
  char cwd[512];
  assert_non_null(getcwd(cwd, sizeof cwd));
  assert_true(dprintf(program, "#!/bin/sh\nprintf x >>'%s/%s'\nexit 1\n", cwd, counted) > 0);
  assert_int_equal(fchmod(program, 0700), 0);
  close(program);
  problem.clear();
  const std::string path = std::string(cwd) + "/" + script;
  const int error = error_with(path.c_str(), problem);
  unlink(counted);
  unlink(script);
  assert_int_equal(error, ESRCH);
  assert_non_null(strstr(problem.line, script));
  assert_null(strchr(problem.line, '\n'));
  assert_in_range(lseek(starts, 0, SEEK_END), 1, 64);
  close(starts);
  assert_true(tests::nothing_left());
  // The next attempt is a fresh one.
  assert_non_null(DaemonLink::open(problem).get());
}

// Runs dappled with one argument. Returns its process.
pid_t start_dappled(const char* argument) {
  const pid_t process = fork();
  if (process != 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setenv("DAPPLED_LINGER", "10", 1);
  const char* path = getenv("DAPPLE_DAPPLED");
  execl(path, path, argument, nullptr);
  _exit(127);
}

int exit_code_of(pid_t process) {
  int status = 0;
  if (waitpid(process, &status, 0) != process || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

void dappled__in_the_foreground__ends_by_sigint(void**) {
  assert_true(tests::ends_soon());
  const pid_t process = start_dappled("--foreground");
  Problem problem;
  std::unique_ptr<DaemonLink> link;
  for (int i = 0; i < 2000 && link == nullptr; i++) {
    usleep(10000);
    link = DaemonLink::open(problem, DaemonLink::Start::kNever);
  }
  assert_non_null(link.get());
  assert_int_equal(status_of(*link).process, process);
  assert_int_equal(exit_code_of(start_dappled("--foreground")), 1);
  // It ends, although it has a member.
  assert_int_equal(kill(process, SIGINT), 0);
  assert_int_equal(exit_code_of(process), 0);
  link.reset();
  assert_true(tests::nothing_left());
}

void dappled__ready_fd__tells_that_somebody_listens(void**) {
  assert_true(tests::ends_soon());
  uint32_t first = 0;
  std::unique_ptr<DaemonLink> link;
  Problem problem;
  for (int i = 0; i < 2; i++) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const std::string argument = "--ready-fd=" + std::to_string(ends[1]);
    // It continues in a process of its own.
    assert_int_equal(exit_code_of(start_dappled(argument.c_str())), 0);
    close(ends[1]);
    char text[8] = "";
    assert_int_equal(read(ends[0], text, sizeof text), 1);
    assert_int_equal(text[0], 'R');
    // The end of the file: dappled keeps no copy.
    assert_int_equal(read(ends[0], text, sizeof text), 0);
    close(ends[0]);
    // The second one leaves the namespace to the first.
    link = DaemonLink::open(problem, DaemonLink::Start::kNever);
    assert_non_null(link.get());
    if (i == 0) first = status_of(*link).process;
    assert_int_equal(status_of(*link).process, first);
  }
  link.reset();
  kill(static_cast<pid_t>(first), SIGTERM);
  assert_true(tests::ends_soon());
}

void dappled__other_arguments__are_refused(void**) {
  for (const char* argument : {"--ready-fd=2", "--ready-fd=", "--ready-fd=4x", "--ready-fd=-1", "--ready-fd=1048577",
                               "--ready-fd=99999999999999999999", "--foreground=1", "--helpful", ""}) {
    assert_int_equal(exit_code_of(start_dappled(argument)), 2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  program_name = argv[0];
  if (argc > 1 && strcmp(argv[1], "--member") == 0) {
    Slot slot;
    return tests::link_with_slot(slot) != nullptr ? 0 : 1;
  }
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__one_program__is_quick_and_leaves_nothing),
      cmocka_unit_test(dappled__pipe_of_its_starter__is_closed),
      cmocka_unit_test(dappled__started_by_a_limited_program__has_its_hard_limits),
      cmocka_unit_test(dappled__no_dev_null__starts),
      cmocka_unit_test(dappled__port_taken__is_told),
      cmocka_unit_test(dappled__port_held_by_a_ping__is_awaited),
      cmocka_unit_test(dappled__cannot_be_started__one_line_tells_why),
      cmocka_unit_test(dappled__in_the_foreground__ends_by_sigint),
      cmocka_unit_test(dappled__ready_fd__tells_that_somebody_listens),
      cmocka_unit_test(dappled__other_arguments__are_refused),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
