// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/group_sockets.hpp"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

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

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(leave__of_the_groups_beyond_the_limit__takes_its_own_only_again)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
