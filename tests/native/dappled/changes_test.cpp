// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Changes of netdevs and addresses: the GIDs of a device, and the notices to members.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "provider/member/counters_file.hpp"
#include "provider/member/daemon_link.hpp"
#include "tests/native/dappled/member.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using dapple::tests::status_of;

namespace {

// True if the member is notified of a change.
bool told_of_change(DaemonLink& link) {
  Problem problem;
  pollfd waiting = {link.fd(), POLLIN, 0};
  return poll(&waiting, 1, 20000) == 1 && link.check(problem) && link.take_changed();
}

void dappled__addresses_change__keep_their_places(void**) {
  Problem problem;
  const auto link = DaemonLink::open(problem);
  DeviceList before, after;
  DeviceInfo device;
  assert_true(link->devices(before, problem));
  if (!tests::run("ip addr add 10.9.9.1/32 dev lo && ip addr add 10.9.9.2/32 dev lo && ip addr del 10.9.9.1/32 dev lo"
                  " && ip addr add 10.9.9.3/32 dev lo")) {
    skip_test("no address can be added to lo");
  }
  assert_true(link->devices(after, problem));
  assert_int_not_equal(before.generation, after.generation);
  assert_true(link->device(after.indexes[0], device, problem));
  uint32_t places[4] = {99, 99, 99, 99};
  for (uint32_t i = 0; i < kMaxGids; i++) {
    const uint8_t* gid = device.gids[i].gid;
    if (device.gids[i].valid != 0 && gid[12] == 10 && gid[13] == 9 && gid[15] < 4) places[gid[15]] = i;
  }
  assert_int_equal(places[1], 99);
  assert_int_not_equal(places[2], 99);
  assert_int_not_equal(places[3], 99);
  tests::run("ip addr del 10.9.9.2/32 dev lo; ip addr del 10.9.9.3/32 dev lo");
  assert_true(link->device(after.indexes[0], device, problem));
  for (uint32_t i = 0; i < kMaxGids; i++) assert_true(device.gids[i].valid == 0 || device.gids[i].gid[12] != 10);
}

// The place of the GID of 10.9.9.LAST; kMaxGids if the device lacks it.
uint32_t place_of(DaemonLink& link, uint8_t last) {
  Problem problem;
  DeviceList list;
  DeviceInfo device;
  uint32_t place = 0;
  if (!link.devices(list, problem) || !link.device(list.indexes[0], device, problem)) return kMaxGids;
  while (place < kMaxGids) {
    const uint8_t* gid = device.gids[place].gid;
    if (device.gids[place].valid != 0 && gid[12] == 10 && gid[13] == 9 && gid[15] == last) break;
    place++;
  }
  return place;
}

void end_dappled(DaemonLink& link) {
  const int socket = dup(link.fd());
  kill(static_cast<pid_t>(status_of(link).process), SIGKILL);
  pollfd gone = {socket, POLLRDHUP, 0};
  poll(&gone, 1, 20000);
  close(socket);
}

void dappled__dies__next_one_has_the_same_places(void**) {
  Slot slot;
  const auto link = tests::link_with_slot(slot);
  assert_non_null(link.get());
  if (!tests::run("for i in 1 2 3 4; do ip addr add 10.9.9.$i/32 dev lo || exit 1; done")) {
    skip_test("no address can be added to lo");
  }
  const uint32_t used = place_of(*link, 1);
  DeviceList list;
  DeviceInfo device;
  Problem problem;
  assert_true(link->devices(list, problem) && link->device(list.indexes[0], device, problem));
  // What a queue pair does.
  GidUseRow& row = slot.gid_uses->rows[0];
  row.entry.store(gid_entry_key(device.index, used));
  row.uses.store(1);
  slot.gid_uses->end.store(1);
  assert_true(tests::run("ip addr del 10.9.9.1/32 dev lo && ip addr del 10.9.9.3/32 dev lo"));
  const uint32_t second = place_of(*link, 2), fourth = place_of(*link, 4);
  assert_int_equal(second, used + 1);
  assert_int_equal(fourth, used + 3);
  end_dappled(*link);
  // The kernel lists this one last.
  assert_true(tests::run("ip addr del 10.9.9.2/32 dev lo && ip addr add 10.9.9.2/32 dev lo"));
  assert_int_equal(place_of(*link, 2), second);
  assert_int_equal(place_of(*link, 4), fourth);
  // The place that is in use stays taken, and the other one is free.
  assert_true(tests::run("ip addr add 10.9.9.5/32 dev lo && ip addr add 10.9.9.1/32 dev lo"));
  assert_int_equal(place_of(*link, 5), used + 2);
  assert_int_equal(place_of(*link, 1), used + 4);
  row.uses.store(0);
  assert_true(tests::run("ip addr add 10.9.9.6/32 dev lo"));
  assert_int_equal(place_of(*link, 6), used);
  tests::run("for i in 1 2 4 5 6; do ip addr del 10.9.9.$i/32 dev lo; done");
}

void dappled__program_in_use_of_a_place_is_killed__place_is_free(void**) {
  tests::Member member;
  Problem problem;
  const auto link = DaemonLink::open(problem);
  assert_true(link != nullptr && member.start());
  if (!tests::run("ip addr add 10.9.9.1/32 dev lo")) skip_test("no address can be added to lo");
  const uint32_t place = place_of(*link, 1);
  Slot slot;
  DeviceList list;
  DeviceInfo device;
  assert_true(link->slot(slot, problem));
  assert_true(link->devices(list, problem) && link->device(list.indexes[0], device, problem));
  SlotPages* pages = map_counters(slot.counters_file, member.slot);
  assert_non_null(pages);
  pages->gid_uses.rows[0].entry.store(gid_entry_key(device.index, place));
  pages->gid_uses.rows[0].uses.store(7);
  pages->gid_uses.end.store(1);
  assert_true(tests::run("ip addr del 10.9.9.1/32 dev lo && ip addr add 10.9.9.2/32 dev lo"));
  assert_int_not_equal(place_of(*link, 2), place);
  member.end();
  for (int i = 0; i < 2000 && status_of(*link).slots_in_use > 1; i++) usleep(10000);
  assert_true(tests::run("ip addr add 10.9.9.3/32 dev lo"));
  assert_int_equal(place_of(*link, 3), place);
  tests::run("ip addr del 10.9.9.2/32 dev lo; ip addr del 10.9.9.3/32 dev lo");
}

// As on a host of containers.
void dappled__many_ports_of_a_bridge__take_no_place(void**) {
  if (!tests::run("ip link add bridge0 type bridge")) skip_test("no bridge can be made");
  assert_true(
      tests::run("for i in $(seq 35); do ip link add p$i type veth peer name q$i && ip link set p$i master bridge0 && "
                 "ip link set q$i master bridge0 || exit 1; done"));
  assert_true(tests::run("ip link add late0 type veth peer name late1 && ip addr add 10.9.9.7/32 dev late0"));
  Problem problem;
  const auto link = DaemonLink::open(problem);
  DeviceList list;
  assert_true(link->devices(list, problem));
  bool found = false;
  for (uint32_t i = 0; i < list.count; i++) {
    DeviceInfo device;
    assert_true(link->device(list.indexes[i], device, problem));
    assert_int_not_equal(device.netdev[0], 'p');
    found = found || strcmp(device.netdev, "late0") == 0;
  }
  assert_true(found);
  tests::run("ip link del late0; for i in $(seq 35); do ip link del p$i; done; ip link del bridge0");
}

void dappled__changes__are_told_to_members(void**) {
  Problem problem;
  auto member = DaemonLink::open(problem);
  auto guest = DaemonLink::open(problem);
  Slot slot;
  DeviceList list;
  assert_true(member->slot(slot, problem));
  assert_true(member->take_changed());  // a new connection may have missed any change
  guest->take_changed();
  if (!tests::run("ip addr add 10.9.9.1/32 dev lo")) skip_test("no address can be added to lo");
  assert_true(told_of_change(*member));
  // dappled notifies once, until the member has asked.
  assert_true(tests::run("ip addr del 10.9.9.1/32 dev lo && ip addr add 10.9.9.2/32 dev lo"));
  pollfd waiting = {member->fd(), POLLIN, 0};
  assert_int_equal(poll(&waiting, 1, 200), 0);
  assert_true(member->devices(list, problem));
  assert_true(tests::run("ip addr del 10.9.9.2/32 dev lo"));
  assert_true(told_of_change(*member));
  // An answer that arrives after the notification is still the answer.
  for (int i = 0; i < 50; i++) {
    assert_true(tests::run(i % 2 == 0 ? "ip addr add 10.9.9.1/32 dev lo" : "ip addr del 10.9.9.1/32 dev lo"));
    assert_true(member->devices(list, problem));
    assert_true(status_of(*member).slots > 0);
  }
  // A new dappled may have missed changes, so the member is notified.
  member->take_changed();
  kill(static_cast<pid_t>(status_of(*member).process), SIGKILL);
  assert_true(told_of_change(*member));
  // A program without a slot gets no notification, and none remains in its socket.
  assert_false(guest->changed());
  assert_true(guest->devices(list, problem));
  member.reset();
  guest.reset();
  assert_true(tests::ends_soon());
}

}  // namespace

int main() {
  tests::need_new_namespace();
  const CMUnitTest all[] = {
      cmocka_unit_test(dappled__addresses_change__keep_their_places),
      cmocka_unit_test(dappled__dies__next_one_has_the_same_places),
      cmocka_unit_test(dappled__program_in_use_of_a_place_is_killed__place_is_free),
      cmocka_unit_test(dappled__many_ports_of_a_bridge__take_no_place),
      cmocka_unit_test(dappled__changes__are_told_to_members),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
