// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/device_table.hpp"

#include <string.h>

#include <algorithm>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

constexpr uint64_t kHere = 5, kElsewhere = 6;

Netdevs netdevs;

Netdev& add(uint32_t index, const char* name) {
  Netdev& netdev = netdevs.devices[netdevs.count++];
  netdev = {};
  netdev.index = index;
  strcpy(netdev.name, name);
  netdev.up = netdev.ethernet = true;
  netdev.mtu = 1500;
  return netdev;
}

void add_address(Netdev& netdev, uint8_t last) {
  uint8_t* gid = netdev.addresses[netdev.address_count++];
  memset(gid, 0, 16);
  gid[10] = gid[11] = 0xFF;
  gid[12] = 10;
  gid[15] = last;
}

void remove_address(Netdev& netdev, uint32_t place) {
  netdev.address_count--;
  memmove(netdev.addresses[place], netdev.addresses[place + 1], 16 * (netdev.address_count - place));
}

int start(void**) {
  netdevs.count = 0;
  Netdev& loopback = add(1, "lo");
  loopback.loopback = true;
  loopback.ethernet = false;
  add(2, "idle0").up = false;
  add_address(add(3, "eth0"), 1);
  add(4, "port0").enslaved = true;
  add(5, "tunnel0").ethernet = false;
  return 0;
}

void update__first__orders_by_use(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  assert_int_equal(table.count(), 3);
  assert_string_equal(table.at(0).netdev, "eth0");
  assert_string_equal(table.at(1).netdev, "idle0");
  assert_string_equal(table.at(2).netdev, "lo");
  assert_string_equal(table.at(2).name, "dapple2");
  assert_int_equal(table.at(0).index, soft::kFirstDeviceIndex);
  assert_true(table.at(0).guid != table.at(1).guid && table.at(0).guid != 0);
  assert_int_equal(table.at(0).gids[1].valid, 1);
  assert_int_equal(table.at(0).gids[2].valid, 0);
}

void update__nothing_new__changes_nothing(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  const uint32_t generation = table.generation();
  table.update(netdevs);
  assert_int_equal(table.generation(), generation);
}

void update__next_dappled__gives_the_same_guids(void**) {
  DeviceTable table(kHere), next(kHere), other(kElsewhere);
  table.update(netdevs);
  next.update(netdevs);
  other.update(netdevs);
  for (uint32_t i = 0; i < table.count(); i++) {
    assert_true(table.at(i).guid == next.at(i).guid);
    assert_true(table.at(i).guid != other.at(i).guid);
  }
}

void update__netdev_gone__frees_its_number(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  const uint64_t guid = table.at(0).guid;
  netdevs.devices[2] = netdevs.devices[3];
  netdevs.count = 3;
  table.update(netdevs);
  assert_int_equal(table.count(), 2);
  assert_null(table.find(soft::kFirstDeviceIndex));
  assert_string_equal(table.at(0).name, "dapple1");
  add(9, "eth9");
  table.update(netdevs);
  assert_string_equal(table.at(0).netdev, "eth9");
  assert_string_equal(table.at(0).name, "dapple0");
  assert_true(table.at(0).guid != guid);
}

// Users of the old device would take the new one for it.
void update__netdev_replaced__has_another_number(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  const uint32_t index = table.at(0).index;
  netdevs.devices[2].index = 9;
  table.update(netdevs);
  assert_int_equal(table.count(), 3);
  assert_null(table.find(index));
  add(10, "eth10");
  table.update(netdevs);
  assert_string_equal(table.find(index)->netdev, "eth10");
}

void update__address_gone__leaves_others_in_place(void**) {
  Netdev& eth0 = netdevs.devices[2];
  DeviceTable table(kHere);
  add_address(eth0, 2);
  add_address(eth0, 3);
  table.update(netdevs);
  remove_address(eth0, 1);
  table.update(netdevs);
  assert_int_equal(table.at(0).gids[1].gid[15], 1);
  assert_int_equal(table.at(0).gids[2].valid, 0);
  assert_int_equal(table.at(0).gids[3].gid[15], 3);
  add_address(eth0, 4);
  table.update(netdevs);
  assert_int_equal(table.at(0).gids[2].gid[15], 4);
}

// The places that are in use, and a count of the removals.
struct Users final : GidUsers {
  bool uses_gid(const soft::DeviceInfo& device, uint32_t gid_index) const override {
    return device.netdev_index == 3 && (places >> gid_index & 1) != 0;
  }
  void gids_removed() override { removals++; }
  uint64_t places = 0;
  int removals = 0;
};

void update__address_of_a_used_place_gone__place_stays_taken(void**) {
  Netdev& eth0 = netdevs.devices[2];
  Users users;
  DeviceTable table(kHere, &users);
  add_address(eth0, 2);
  table.update(netdevs);
  users.places = 1 << 1;
  remove_address(eth0, 0);
  table.update(netdevs);
  assert_int_equal(users.removals, 1);
  assert_int_equal(table.at(0).gids[1].valid, 0);
  // Neither another address nor the same one gets the place.
  add_address(eth0, 4);
  add_address(eth0, 1);
  table.update(netdevs);
  assert_int_equal(table.at(0).gids[1].valid, 0);
  assert_int_equal(table.at(0).gids[3].gid[15], 4);
  assert_int_equal(table.at(0).gids[4].gid[15], 1);
  users.places = 0;
  add_address(eth0, 5);
  table.update(netdevs);
  assert_int_equal(table.at(0).gids[1].gid[15], 5);
}

// As the table of the first device has it now.
soft::AnnounceGidsRequest announced_gids(const DeviceTable& table) {
  soft::AnnounceGidsRequest known;
  const soft::DeviceInfo& device = table.at(0);
  known.guid = device.guid;
  known.index = device.index;
  known.generation = device.generation;
  std::copy_n(device.gids, soft::kMaxGids, known.gids);
  return known;
}

void restore_gids__next_dappled__has_the_same_order(void**) {
  Netdev& eth0 = netdevs.devices[2];
  Users users;
  DeviceTable table(kHere), next(kHere, &users);
  add_address(eth0, 2);
  add_address(eth0, 3);
  table.update(netdevs);
  const soft::AnnounceGidsRequest older = announced_gids(table);
  remove_address(eth0, 0);
  table.update(netdevs);
  const soft::AnnounceGidsRequest known = announced_gids(table);
  users.places = 1 << 1;
  // Addresses that come while no dappled runs take places that are free.
  remove_address(eth0, 1);
  add_address(eth0, 4);
  add_address(eth0, 5);
  next.update(netdevs);
  next.restore_gids(known);
  const uint32_t generation = next.at(0).generation;
  assert_true(generation > known.generation);
  next.restore_gids(known);
  next.restore_gids(older);
  assert_int_equal(next.at(0).generation, generation);
  assert_int_equal(next.at(0).gids[1].valid, 0);
  assert_int_equal(next.at(0).gids[2].gid[15], 2);
  assert_int_equal(next.at(0).gids[3].gid[15], 4);
  assert_int_equal(next.at(0).gids[4].gid[15], 5);
  assert_int_equal(next.at(0).gids[5].valid, 0);
}

void restore_gids__older_announcement_first__newer_one_counts(void**) {
  Netdev& eth0 = netdevs.devices[2];
  DeviceTable table(kHere), next(kHere);
  add_address(eth0, 2);
  table.update(netdevs);
  const soft::AnnounceGidsRequest older = announced_gids(table);
  remove_address(eth0, 0);
  table.update(netdevs);
  add_address(eth0, 3);
  table.update(netdevs);
  add_address(eth0, 1);
  table.update(netdevs);
  next.update(netdevs);
  next.restore_gids(older);
  assert_int_equal(next.at(0).gids[1].gid[15], 1);
  next.restore_gids(announced_gids(table));
  assert_int_equal(next.at(0).gids[1].gid[15], 3);
  assert_int_equal(next.at(0).gids[2].gid[15], 2);
  assert_int_equal(next.at(0).gids[3].gid[15], 1);
}

void restore_gids__garbage__does_no_harm(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  soft::AnnounceGidsRequest known = announced_gids(table);
  known.generation = 9;
  const soft::GidEntry address = known.gids[1];
  for (soft::GidEntry& entry : known.gids) {
    memcpy(entry.gid, address.gid, sizeof entry.gid);
    entry.valid = 1;
  }
  known.gids[2].base_index = UINT8_MAX;
  table.restore_gids(known);
  assert_int_equal(table.at(0).gids[1].gid[15], 1);
  for (uint32_t i = 2; i < soft::kMaxGids; i++) assert_int_equal(table.at(0).gids[i].valid, 0);
  known.guid++;
  known.generation++;
  for (soft::GidEntry& entry : known.gids) entry.valid = 0;
  table.restore_gids(known);
  assert_int_equal(table.at(0).gids[1].valid, 1);
}

soft::AnnouncedDevice announced(uint32_t netdev_index, const char* netdev, uint32_t index, uint64_t guid) {
  soft::AnnouncedDevice known;
  known.netdev_index = netdev_index;
  strcpy(known.netdev, netdev);
  known.index = index;
  known.guid = guid;
  return known;
}

void restore__known_device__has_its_identity_again(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  table.restore(announced(3, "eth0", soft::kFirstDeviceIndex + 2, 77));
  const soft::DeviceInfo* device = table.find(soft::kFirstDeviceIndex + 2);
  assert_non_null(device);
  assert_string_equal(device->netdev, "eth0");
  assert_string_equal(device->name, "dapple2");
  assert_true(device->guid == 77);
  // The two have exchanged their numbers.
  device = table.find(soft::kFirstDeviceIndex);
  assert_non_null(device);
  assert_string_equal(device->netdev, "lo");
  assert_string_equal(device->name, "dapple0");
}

void restore__nonsense__is_ignored(void**) {
  DeviceTable table(kHere);
  table.update(netdevs);
  const uint32_t generation = table.generation();
  table.restore(announced(3, "eth1", soft::kFirstDeviceIndex + 2, 77));
  table.restore(announced(33, "eth0", soft::kFirstDeviceIndex + 2, 77));
  table.restore(announced(3, "eth0", 2, 77));
  table.restore(announced(3, "eth0", soft::kFirstDeviceIndex + 2, 0));
  table.restore(announced(3, "eth0", UINT32_MAX, 77));
  assert_int_equal(table.generation(), generation);
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test_setup(update__first__orders_by_use, start),
      cmocka_unit_test_setup(update__nothing_new__changes_nothing, start),
      cmocka_unit_test_setup(update__next_dappled__gives_the_same_guids, start),
      cmocka_unit_test_setup(update__netdev_gone__frees_its_number, start),
      cmocka_unit_test_setup(update__netdev_replaced__has_another_number, start),
      cmocka_unit_test_setup(update__address_gone__leaves_others_in_place, start),
      cmocka_unit_test_setup(update__address_of_a_used_place_gone__place_stays_taken, start),
      cmocka_unit_test_setup(restore_gids__next_dappled__has_the_same_order, start),
      cmocka_unit_test_setup(restore_gids__older_announcement_first__newer_one_counts, start),
      cmocka_unit_test_setup(restore_gids__garbage__does_no_harm, start),
      cmocka_unit_test_setup(restore__known_device__has_its_identity_again, start),
      cmocka_unit_test_setup(restore__nonsense__is_ignored, start),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
