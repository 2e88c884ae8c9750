// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/group_sockets.hpp"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::GroupSockets;
using dapple::soft::OwnedFd;

namespace {

constexpr uint32_t kLoopback = 1;  // the index of lo
constexpr uint32_t kMaxGroups = 2000;

// The number of groups that a socket may be in; 0 if it is not known or too large for a test.
uint32_t limit_of_groups() {
  FILE* file = fopen("/proc/sys/net/ipv4/igmp_max_memberships", "re");
  unsigned limit = 0;
  if (file == nullptr) return 0;
  if (fscanf(file, "%u", &limit) != 1 || limit > kMaxGroups) limit = 0;
  fclose(file);
  return limit;
}

struct Group {
  // 239.1.0.0 and the following ones.
  explicit Group(uint32_t number)
      : bytes{0,
              0,
              0,
              0,
              0,
              0,
              0,
              0,
              0,
              0,
              0xFF,
              0xFF,
              239,
              1,
              static_cast<uint8_t>(number >> 8),
              static_cast<uint8_t>(number)} {}
  uint8_t bytes[16];
};

int takes_groups_of_others(const OwnedFd& socket) {
  int on = -1;
  socklen_t size = sizeof on;
  getsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_ALL, &on, &size);
  return on;
}

void leave__of_the_groups_beyond_the_limit__takes_its_own_only_again(void**) {
  const uint32_t limit = limit_of_groups();
  if (limit == 0) skip();
  const OwnedFd receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int no = 0;
  assert_int_equal(setsockopt(receiver.get(), IPPROTO_IP, IP_MULTICAST_ALL, &no, sizeof no), 0);
  GroupSockets groups;
  const auto join = [&](uint32_t number) { return groups.join(receiver.get(), false, Group(number).bytes, kLoopback); };
  const auto leave = [&](uint32_t number) {
    return groups.leave(receiver.get(), false, Group(number).bytes, kLoopback);
  };
  for (uint32_t i = 0; i < limit; i++) assert_int_equal(join(i), 0);
  assert_int_equal(takes_groups_of_others(receiver), 0);
  for (int round = 0; round < 2; round++) {
    for (uint32_t i = limit; i < limit + 2; i++) assert_int_equal(join(i), 0);
    // It counts once.
    assert_int_equal(join(limit), 0);
    assert_int_equal(takes_groups_of_others(receiver), 1);
    assert_int_equal(leave(limit), 0);
    assert_int_equal(leave(limit), EADDRNOTAVAIL);
    assert_int_equal(takes_groups_of_others(receiver), 1);
    assert_int_equal(leave(limit + 1), 0);
    assert_int_equal(takes_groups_of_others(receiver), 0);
  }
  for (uint32_t i = 0; i < limit; i++) assert_int_equal(leave(i), 0);
}

bool has_group(FILE* list, const Group& group) {
  uint32_t address = 0;
  memcpy(&address, group.bytes + 12, sizeof address);
  char line[256], wanted[16];
  snprintf(wanted, sizeof wanted, "%08X", address);
  while (fgets(line, sizeof line, list) != nullptr)
    if (strstr(line, wanted) != nullptr) return true;
  return false;
}

// The exit code; 77: not permitted.
int join_from_another_namespace(uint32_t limit) {
  const OwnedFd receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  GroupSockets groups;
  const auto join = [&](uint32_t number) { return groups.join(receiver.get(), false, Group(number).bytes, kLoopback); };
  FILE* first_space = fopen("/proc/thread-self/net/igmp", "re");
  if (first_space == nullptr || (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)) return 77;
  FILE* second_space = fopen("/proc/thread-self/net/igmp", "re");
  if (second_space == nullptr) return 77;
  for (uint32_t i = 0; i < limit; i++)
    if (join(i) != 0) return 1;
  if (!has_group(first_space, Group(0)) || has_group(second_space, Group(0))) return 2;
  // A socket of the new namespace would receive nothing for the device.
  return join(limit) == ENOBUFS ? 0 : 3;
}

void join__in_another_network_namespace__is_in_that_of_the_device(void**) {
  const uint32_t limit = limit_of_groups();
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  const OwnedFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (limit == 0 || getsockopt(any.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) skip();
  const pid_t child = fork();
  if (child == 0) _exit(join_from_another_namespace(limit));
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(leave__of_the_groups_beyond_the_limit__takes_its_own_only_again),
                              cmocka_unit_test(join__in_another_network_namespace__is_in_that_of_the_device)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
