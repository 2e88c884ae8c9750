// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The table of devices with several devices on one netdev, and what programs see of it.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <initializer_list>

#include "provider/dappled/network/device_table.hpp"
#include "provider/dappled/rdma_cm/packets/gid_location.hpp"
#include "provider/network/gid.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

constexpr uint64_t kHere = 5;

Netdevs netdevs;
DeviceTable* table = nullptr;

Netdev& add(uint32_t index, const char* name) {
  Netdev& netdev = netdevs.devices[netdevs.count++];
  netdev = {};
  netdev.index = index;
  strcpy(netdev.name, name);
  netdev.up = netdev.ethernet = true;
  netdev.mtu = 1500;
  return netdev;
}

roce::cm::Gid ipv4(uint8_t first, uint8_t last) {
  const uint8_t address[4] = {first, 0, 0, last};
  roce::cm::Gid gid;
  soft::ipv4_gid(address, gid.data());
  return gid;
}

// 10.0.0.LAST, in this order.
void set_addresses(Netdev& netdev, std::initializer_list<uint8_t> lasts) {
  netdev.address_count = 0;
  for (const uint8_t last : lasts) memcpy(netdev.addresses[netdev.address_count++], ipv4(10, last).data(), 16);
}

Netdev& eth0() {
  return netdevs.devices[1];
}

int start(void**) {
  netdevs.count = 0;
  Netdev& loopback = add(1, "lo");
  loopback.loopback = true;
  loopback.ethernet = false;
  memcpy(loopback.addresses[loopback.address_count++], ipv4(127, 1).data(), 16);
  set_addresses(add(3, "eth0"), {3, 2, 4, 1});
  table = new DeviceTable(kHere);
  table->update(netdevs);
  return 0;
}

int finish(void**) {
  delete table;
  return 0;
}

soft::Rails rails(const char* netdev, uint32_t count) {
  soft::Rails made;
  strcpy(made.netdev, netdev);
  made.count = count;
  return made;
}

bool divide(const soft::Rails& wanted) {
  soft::Problem problem;
  return table->divide(wanted, netdevs, problem);
}

uint32_t seen(const soft::Rails& wanted) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < table->count(); i++) count += wanted.has(table->at(i)) ? 1 : 0;
  return count;
}

soft::DeviceInfo shown(const soft::Rails& wanted, uint32_t rail) {
  for (uint32_t i = 0; i < table->count(); i++) {
    soft::DeviceInfo device = table->at(i);
    if (!wanted.has(device) || device.rail != rail) continue;
    table->show(wanted, device);
    return device;
  }
  fail_msg("no device %u", rail);
  return {};
}

bool has(const soft::DeviceInfo& device, const roce::cm::Gid& gid) {
  return std::any_of(std::begin(device.gids), std::end(device.gids), [&](const soft::GidEntry& entry) {
    return entry.valid != 0 && memcmp(entry.gid, gid.data(), gid.size()) == 0;
  });
}

void divide__lo__each_device_has_its_address(void**) {
  const soft::Rails eight = rails("", 8);
  assert_true(divide(eight));
  assert_int_equal(seen(eight), 8);
  for (uint32_t i = 0; i < 8; i++) {
    const soft::DeviceInfo device = shown(eight, i), next = shown(eight, (i + 1) % 8);
    assert_int_equal(soft::number_of(device), i);
    assert_int_equal(device.netdev_index, 1);
    assert_memory_equal(device.gids[1].gid, ipv4(127, static_cast<uint8_t>(i + 1)).data(), 16);
    assert_int_equal(device.gids[0].valid, 1);
    assert_memory_not_equal(device.gids[0].gid, next.gids[0].gid, 16);
    assert_true(device.guid != next.guid && device.index != next.index);
  }
}

void divide__others__see_what_they_saw(void**) {
  const soft::Rails none;
  const uint32_t index = table->at(0).index, generation = table->at(0).generation;
  assert_true(divide(rails("", 8)) && divide(rails("eth0", 4)));
  assert_int_equal(seen(none), 2);
  assert_int_equal(table->at(0).index, index);
  assert_int_equal(table->at(0).generation, generation);
  for (uint8_t last = 1; last <= 4; last++) assert_true(has(shown(rails("eth0", 1), 0), ipv4(10, last)));
  // The next netdev has the next number.
  add(7, "eth1");
  table->update(netdevs);
  assert_non_null(table->find(soft::kFirstDeviceIndex + 2));
  assert_int_equal(seen(none), 3);
}

void divide__netdev_with_addresses__shares_them_out_in_order(void**) {
  const soft::Rails two = rails("eth0", 2), four = rails("eth0", 4);
  assert_true(divide(two));
  // Those that are left are the first device's.
  assert_true(has(shown(two, 0), ipv4(10, 1)) && has(shown(two, 0), ipv4(10, 3)) && has(shown(two, 0), ipv4(10, 4)));
  assert_false(has(shown(two, 0), ipv4(10, 2)));
  assert_true(has(shown(two, 1), ipv4(10, 2)) && !has(shown(two, 1), ipv4(10, 1)));
  assert_true(divide(four));
  for (uint8_t i = 0; i < 4; i++) {
    for (uint8_t last = 1; last <= 4; last++) assert_int_equal(has(shown(four, i), ipv4(10, last)), last == i + 1);
  }
  assert_true(has(shown(two, 0), ipv4(10, 4)));
}

void update__address_goes__the_others_keep_theirs(void**) {
  const soft::Rails four = rails("eth0", 4);
  assert_true(divide(four));
  set_addresses(eth0(), {1, 2, 4});
  table->update(netdevs);
  assert_true(has(shown(four, 0), ipv4(10, 1)) && has(shown(four, 1), ipv4(10, 2)) && has(shown(four, 3), ipv4(10, 4)));
  assert_int_equal(shown(four, 2).gids[1].valid, 0);
  set_addresses(eth0(), {9, 1, 2, 4});
  table->update(netdevs);
  // The lowest one of those that no further device has is the first device's.
  assert_true(has(shown(four, 0), ipv4(10, 1)) && has(shown(four, 2), ipv4(10, 9)));
}

void divide__into_fewer__addresses_move_to_those_that_are_left(void**) {
  assert_true(divide(rails("eth0", 4)));
  set_addresses(eth0(), {1, 4});
  table->update(netdevs);
  const soft::Rails two = rails("eth0", 2);
  assert_false(has(shown(two, 1), ipv4(10, 4)));
  assert_true(divide(two));
  assert_true(has(shown(two, 0), ipv4(10, 1)) && has(shown(two, 1), ipv4(10, 4)));
  assert_int_equal(seen(rails("eth0", 4)), 2);
}

void update__netdev_goes_and_comes__has_its_devices_again(void**) {
  const soft::Rails four = rails("eth0", 4);
  assert_true(divide(four));
  netdevs.count = 1;
  table->update(netdevs);
  assert_int_equal(seen(four), 0);
  assert_int_equal(table->count(), 1);
  set_addresses(add(9, "eth0"), {1, 2, 3, 4});
  table->update(netdevs);
  assert_int_equal(seen(four), 4);
  assert_true(has(shown(four, 3), ipv4(10, 4)));
}

void restore__further_device__has_its_index_and_guid(void**) {
  assert_true(divide(rails("", 4)));
  soft::AnnouncedDevice known;
  strcpy(known.netdev, "lo");
  known.netdev_index = 1;
  known.rail = 2;
  known.index = soft::kFirstRailIndex + 7;
  known.guid = 77;
  table->restore(known);
  const soft::DeviceInfo device = shown(rails("", 4), 2);
  assert_int_equal(device.index, soft::kFirstRailIndex + 7);
  assert_int_equal(device.guid, 77);
  assert_true(shown(rails("", 4), 0).guid != 77);
}

void divide__too_many__has_the_reason_and_changes_nothing(void**) {
  set_addresses(add(8, "eth1"), {21, 22});
  table->update(netdevs);
  assert_true(divide(rails("", soft::kMaxRails)) && divide(rails("eth0", soft::kMaxRails)));
  const uint32_t count = table->count();
  soft::Problem problem;
  assert_false(table->divide(rails("eth1", soft::kMaxRails), netdevs, problem));
  assert_int_equal(problem.error, EBUSY);
  assert_false(table->divide(rails("eth7", 2), netdevs, problem));
  assert_int_equal(problem.error, ENODEV);
  assert_int_equal(table->count(), count);
  assert_true(divide(rails("eth1", 2)));
}

void find_gid__address_of_two_devices__the_one_that_the_program_sees(void**) {
  using dappled::rdma_cm::find_gid;
  const soft::Rails none, four = rails("eth0", 4), loopback = rails("", 4);
  assert_true(divide(four) && divide(loopback));
  assert_int_equal(find_gid(*table, four, ipv4(10, 3), 0).device->rail, 2);
  assert_int_equal(find_gid(*table, none, ipv4(10, 3), 0).device->rail, 0);
  assert_int_equal(find_gid(*table, none, ipv4(10, 3), 0).index, 1);
  assert_int_equal(find_gid(*table, loopback, ipv4(127, 3), 0).device->rail, 2);
  assert_int_equal(find_gid(*table, loopback, ipv4(127, 3), 0).index, 1);
  assert_null(find_gid(*table, none, ipv4(127, 3), 0).device);
  assert_null(find_gid(*table, loopback, ipv4(10, 3), 0).device);
  assert_int_equal(find_gid(*table, ipv4(127, 3), 0).device->rail, 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(divide__lo__each_device_has_its_address, start, finish),
      cmocka_unit_test_setup_teardown(divide__others__see_what_they_saw, start, finish),
      cmocka_unit_test_setup_teardown(divide__netdev_with_addresses__shares_them_out_in_order, start, finish),
      cmocka_unit_test_setup_teardown(update__address_goes__the_others_keep_theirs, start, finish),
      cmocka_unit_test_setup_teardown(divide__into_fewer__addresses_move_to_those_that_are_left, start, finish),
      cmocka_unit_test_setup_teardown(update__netdev_goes_and_comes__has_its_devices_again, start, finish),
      cmocka_unit_test_setup_teardown(restore__further_device__has_its_index_and_guid, start, finish),
      cmocka_unit_test_setup_teardown(divide__too_many__has_the_reason_and_changes_nothing, start, finish),
      cmocka_unit_test_setup_teardown(find_gid__address_of_two_devices__the_one_that_the_program_sees, start, finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
