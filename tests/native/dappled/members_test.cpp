// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Members keep their slots and counters, and hear everything, when other members or dappled die.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "provider/member/counters_file.hpp"
#include "provider/member/daemon_link.hpp"
#include "tests/native/clock.hpp"
#include "tests/native/counter.hpp"
#include "tests/native/dappled/member.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using dapple::tests::Member;
using dapple::tests::status_of;

namespace {

uint64_t counted_runts(DaemonLink& link) {
  return tests::counter(status_of(link), "runts");
}

void dappled__members_killed__others_hear_everything(void**) {
  constexpr size_t kMembers = 20;  // more than dappled has slots at its start
  std::vector<Member> members(kMembers);
  for (Member& member : members) assert_true(member.start());
  uint32_t number = 1;
  for (Member& member : members) {
    assert_true(member.hears(number++));
    assert_true(member.hears(number++, true));
  }
  for (size_t i = 0; i < kMembers; i += 2) {
    kill(members[i].process, SIGKILL);
    for (size_t k = 1; k < kMembers; k += 2) assert_true(members[k].hears(number++, k % 4 == 1));
    members[i].end();
  }
  for (size_t k = 1; k < kMembers; k += 2) assert_true(members[k].hears(number++));
  // Other members get the slots of the dead, without any of the packets for the dead.
  for (size_t i = 0; i < kMembers; i += 2) {
    assert_true(members[i].start());
    assert_true(members[i].hears(number++));
  }
  Problem problem;
  auto link = DaemonLink::open(problem);
  assert_int_equal(status_of(*link).slots_in_use, kMembers);
  assert_true(status_of(*link).slots < 40);
  members.clear();
  link.reset();
  assert_true(tests::ends_soon());
}

void dappled__killed__members_go_on(void**) {
  std::vector<Member> members(5);
  for (Member& member : members) assert_true(member.start());
  Problem problem;
  auto link = DaemonLink::open(problem);
  DeviceList devices;
  DeviceInfo before, after;
  assert_true(link->devices(devices, problem));
  assert_true(link->device(devices.indexes[0], before, problem));
  uint32_t number = 1000;
  // The best of all rounds, so that other programs on the machine do not matter.
  double shortest = 1e9;
  for (int round = 0; round < 10; round++) {
    kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
    for (const Member& member : members) assert_true(member.hears(number++));
    const double begin = tests::now();
    assert_true(link->check(problem));
    shortest = std::min(shortest, tests::now() - begin);
    assert_true(link->device(devices.indexes[0], after, problem));
    assert_true(before.guid == after.guid);
    for (const Member& member : members) assert_true(member.hears(number++, round % 2 == 0));
    // A new program gets a slot that nobody has, although some members may not have reconnected yet.
    Member fresh;
    assert_true(fresh.start());
    for (const Member& member : members) assert_int_not_equal(fresh.slot, member.slot);
    assert_true(fresh.hears(number++));
    for (const Member& member : members) assert_true(member.hears(number++));
  }
  assert_true(shortest < 1);
  // dappled and a member die together: the slot is free for the next member.
  const uint32_t dead = members[2].slot;
  kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
  members[2].end();
  assert_true(link->check(problem));
  for (int i = 0; i < 3000 && status_of(*link).slots_in_use != 4; i++) usleep(10000);
  assert_int_equal(status_of(*link).slots_in_use, 4);
  assert_true(status_of(*link).takeovers == 1);
  bool again = false;
  std::vector<Member> more(8);
  for (Member& member : more) {
    assert_true(member.start());
    again = again || member.slot == dead;
    assert_true(member.hears(number++));
  }
  assert_true(again);
  for (size_t i = 0; i < members.size(); i++) assert_true(i == 2 || members[i].hears(number++));
  members.clear();
  more.clear();
  link.reset();
  assert_true(tests::ends_soon());
}

void dappled__counters__outlive_programs_and_dappled(void**) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  assert_non_null(link.get());
  assert_int_equal(counted_runts(*link), 0);
  // A program counts, and is killed.
  const pid_t program = fork();
  if (program == 0) {
    Slot slot;
    const auto own = tests::link_with_slot(slot);
    if (own == nullptr) _exit(1);
    slot.counters->wire.runts.add(5);
    slot.counters->wire.send_error.set(11);
    _exit(0);
  }
  int status = 1;
  waitpid(program, &status, 0);
  assert_int_equal(status, 0);
  assert_int_equal(counted_runts(*link), 5);
  // dappled is killed, and this program, which is a member, passes the counters on.
  Slot slot;
  assert_true(link->slot(slot, problem));
  slot.counters->wire.runts.add(2);
  assert_int_equal(counted_runts(*link), 7);
  kill(static_cast<pid_t>(status_of(*link).process), SIGKILL);
  assert_true(link->check(problem));
  assert_int_equal(counted_runts(*link), 7);
  slot.counters->wire.runts.add();
  assert_int_equal(counted_runts(*link), 8);
  // A file that could be truncated is ignored.
  const OwnedFd plain(memfd_create("plain", MFD_CLOEXEC));
  assert_int_equal(ftruncate(plain.get(), kCountersFileSize), 0);
  assert_false(is_counters_file(plain.get()));
  assert_null(map_counters(plain.get(), 1));
  assert_null(map_counters(slot.counters_file, kMaxSlots));
  link.reset();
  assert_true(tests::ends_soon());
}

// A child that does not use the link holds its descriptors: no other program may get the slot.
void dappled__forked_child__keeps_the_slot_of_its_parent(void**) {
  int told[2], hold[2];
  assert_int_equal(pipe2(told, O_CLOEXEC) + pipe2(hold, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(hold[1]);
    Slot slot;
    const auto link = tests::link_with_slot(slot);
    if (link == nullptr) _exit(1);
    if (fork() == 0) {
      // The child waits until the test closes its end.
      char byte;
      while (read(hold[0], &byte, 1) < 0) {
      }
      _exit(0);
    }
    _exit(write(told[1], &slot.number, sizeof slot.number) < 0 ? 1 : 0);
  }
  uint32_t slot_number = 0;
  assert_int_equal(read(told[0], &slot_number, sizeof slot_number), sizeof slot_number);
  waitpid(parent, nullptr, 0);
  std::vector<Member> members(10);
  for (Member& member : members) {
    assert_true(member.start());
    assert_int_not_equal(member.slot, slot_number);
    assert_true(member.hears(member.slot));
  }
  members.clear();
  assert_false(tests::nothing_left());
  for (const int fd : {told[0], told[1], hold[0], hold[1]}) close(fd);
  assert_true(tests::ends_soon());
}

// 239.7.7.7 and ff12::7777, as the kernel prints them.
bool is_member_of_ipv4_group() {
  return tests::run("grep -q 070707EF /proc/net/igmp");
}

bool is_member_of_ipv6_group() {
  return tests::run("grep -q ff120000000000000000000000007777 /proc/net/igmp6");
}

bool join_groups(int socket) {
  ip_mreqn ipv4 = {};
  ipv6_mreq ipv6 = {};
  inet_pton(AF_INET, "239.7.7.7", &ipv4.imr_multiaddr);
  inet_pton(AF_INET6, "ff12::7777", &ipv6.ipv6mr_multiaddr);
  ipv4.imr_ifindex = static_cast<int>(if_nametoindex("lo"));
  ipv6.ipv6mr_interface = if_nametoindex("lo");
  return setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &ipv4, sizeof ipv4) == 0 &&
         setsockopt(socket, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &ipv6, sizeof ipv6) == 0;
}

// A slot's socket outlives its owner. The next owner would receive the messages of the last one's groups.
void dappled__slot_in_multicast_groups__next_owner_is_in_none(void**) {
  Problem problem;
  const auto link = DaemonLink::open(problem);
  assert_non_null(link.get());
  const pid_t child = fork();
  if (child == 0) {
    Slot slot;
    const auto own = tests::link_with_slot(slot);
    if (own == nullptr || !join_groups(slot.receive_socket)) _exit(0);
    _exit(is_member_of_ipv4_group() && is_member_of_ipv6_group() ? static_cast<int>(slot.number) : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
  const auto slot = static_cast<uint32_t>(WEXITSTATUS(status));
  // dappled hands out the slots in turn.
  std::vector<Member> members;
  members.reserve(30);
  do {
    assert_true(members.size() < 30);
    members.emplace_back();
    assert_true(members.back().start());
  } while (members.back().slot != slot);
  assert_false(is_member_of_ipv4_group());
  assert_false(is_member_of_ipv6_group());
  assert_true(members.back().hears(1));
}

}  // namespace

int main() {
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__members_killed__others_hear_everything),
      cmocka_unit_test(dappled__killed__members_go_on),
      cmocka_unit_test(dappled__counters__outlive_programs_and_dappled),
      cmocka_unit_test(dappled__forked_child__keeps_the_slot_of_its_parent),
      cmocka_unit_test(dappled__slot_in_multicast_groups__next_owner_is_in_none),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
