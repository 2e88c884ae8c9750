// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The first entry of a device's GIDs: the link-local address that derives from the MAC, as on the kernel's devices.
#include <string.h>

#include <algorithm>

#include "provider/dappled/network/device_table.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

constexpr uint8_t kMac[6] = {0x52, 0x54, 0x00, 0x12, 0x34, 0x56};
constexpr uint8_t kOfMac[16] = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0x00, 0xFF, 0xFE, 0x12, 0x34, 0x56};
constexpr uint8_t kOfLoopback[16] = {0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0xFF, 0xFE, 0, 0, 0};
constexpr uint8_t kOfTunnel[16] = {0xFE, 0x80};

Netdevs netdevs;
Netdev& eth0 = netdevs.devices[0];

// The entry of the default GID, as long as a queue pair uses it.
struct Users final : GidUsers {
  bool uses_gid(const soft::DeviceInfo&, uint32_t gid_index) const override { return uses_default && gid_index == 0; }
  void gids_removed() override { removals++; }
  bool uses_default = false;
  int removals = 0;
};

int start(void**) {
  netdevs.count = 1;
  eth0 = {};
  eth0.index = 3;
  strcpy(eth0.name, "eth0");
  eth0.up = eth0.ethernet = true;
  memcpy(eth0.mac, kMac, sizeof kMac);
  return 0;
}

void add_address(const uint8_t gid[16]) {
  memcpy(eth0.addresses[eth0.address_count++], gid, 16);
}

void add_ipv4(uint8_t last) {
  const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
  add_address(gid);
}

const soft::GidEntry& entry_of(const DeviceTable& table, uint32_t index) {
  return table.at(0).gids[index];
}

void expect_default(const DeviceTable& table, const uint8_t gid[16]) {
  const soft::GidEntry& entry = entry_of(table, soft::kDefaultGid);
  assert_int_equal(entry.valid, 1);
  assert_memory_equal(entry.gid, gid, 16);
  assert_int_equal(static_cast<int>(entry.type), static_cast<int>(soft::GidType::kRoceV2));
  assert_int_equal(entry.netdev_index, 3);
}

void update__no_address__default_gid_alone(void**) {
  DeviceTable table(1);
  table.update(netdevs);
  expect_default(table, kOfMac);
  assert_int_equal(entry_of(table, 1).valid, 0);
  assert_int_equal(table.at(0).has_default_address, 0);
}

void update__loopback_or_tunnel__as_the_kernel_without_a_mac(void**) {
  DeviceTable loopback(1), tunnel(1);
  eth0.ethernet = false;
  add_ipv4(1);
  memset(eth0.mac, 0, sizeof eth0.mac);
  tunnel.update(netdevs);
  expect_default(tunnel, kOfTunnel);
  eth0.loopback = true;
  loopback.update(netdevs);
  expect_default(loopback, kOfLoopback);
}

void update__netdev_has_the_address__is_listed_once(void**) {
  DeviceTable table(1);
  add_address(kOfMac);
  add_ipv4(1);
  table.update(netdevs);
  expect_default(table, kOfMac);
  assert_int_equal(table.at(0).has_default_address, 1);
  assert_int_equal(entry_of(table, 1).gid[15], 1);
  assert_int_equal(entry_of(table, 2).valid, 0);
  // As with net.ipv6.conf.eth0.disable_ipv6 = 1.
  eth0.address_count = 0;
  add_ipv4(1);
  table.update(netdevs);
  expect_default(table, kOfMac);
  assert_int_equal(table.at(0).has_default_address, 0);
}

void update__address_gone__its_hole_is_no_default_gid(void**) {
  DeviceTable table(1);
  add_ipv4(1);
  add_ipv4(2);
  table.update(netdevs);
  eth0.address_count = 0;
  add_ipv4(2);
  table.update(netdevs);
  assert_int_equal(entry_of(table, 1).valid, 0);
  add_ipv4(3);
  table.update(netdevs);
  expect_default(table, kOfMac);
  assert_int_equal(entry_of(table, 1).gid[15], 3);
  assert_int_equal(entry_of(table, 2).gid[15], 2);
}

void update__another_mac__default_gid_follows(void**) {
  Users users;
  DeviceTable table(1, &users);
  add_ipv4(1);
  table.update(netdevs);
  users.uses_default = true;
  eth0.mac[5]++;
  table.update(netdevs);
  assert_int_equal(users.removals, 1);
  // In use, it is nobody's. The address then is one like the others.
  assert_int_equal(entry_of(table, soft::kDefaultGid).valid, 0);
  uint8_t other[16];
  memcpy(other, kOfMac, sizeof other);
  other[15]++;
  add_address(other);
  table.update(netdevs);
  assert_memory_equal(entry_of(table, 2).gid, other, sizeof other);
  eth0.address_count = 1;
  users.uses_default = false;
  table.update(netdevs);
  expect_default(table, other);
}

soft::AnnounceGidsRequest announced(const DeviceTable& table) {
  soft::AnnounceGidsRequest known;
  known.guid = table.at(0).guid;
  known.index = table.at(0).index;
  known.generation = table.at(0).generation;
  std::copy_n(table.at(0).gids, soft::kMaxGids, known.gids);
  return known;
}

void restore_gids__default_gid__stays_the_first(void**) {
  DeviceTable table(1), next(1);
  add_ipv4(1);
  add_ipv4(2);
  table.update(netdevs);
  eth0.address_count = 0;
  add_ipv4(2);
  table.update(netdevs);
  next.update(netdevs);
  next.restore_gids(announced(table));
  expect_default(next, kOfMac);
  assert_int_equal(entry_of(next, 1).valid, 0);
  assert_int_equal(entry_of(next, 2).gid[15], 2);
}

// While a queue pair uses the GID of an older MAC.
void restore_gids__default_gid_elsewhere__stays_there(void**) {
  Users users;
  DeviceTable table(1, &users), next(1, &users);
  table.update(netdevs);
  users.uses_default = true;
  eth0.mac[5]++;
  uint8_t other[16];
  memcpy(other, kOfMac, sizeof other);
  other[15]++;
  add_address(other);
  table.update(netdevs);
  assert_memory_equal(entry_of(table, 1).gid, other, sizeof other);
  users.uses_default = false;
  next.update(netdevs);
  users.uses_default = true;
  next.restore_gids(announced(table));
  assert_int_equal(entry_of(next, 0).valid, 0);
  assert_memory_equal(entry_of(next, 1).gid, other, sizeof other);
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test_setup(update__no_address__default_gid_alone, start),
      cmocka_unit_test_setup(update__loopback_or_tunnel__as_the_kernel_without_a_mac, start),
      cmocka_unit_test_setup(update__netdev_has_the_address__is_listed_once, start),
      cmocka_unit_test_setup(update__address_gone__its_hole_is_no_default_gid, start),
      cmocka_unit_test_setup(update__another_mac__default_gid_follows, start),
      cmocka_unit_test_setup(restore_gids__default_gid__stays_the_first, start),
      cmocka_unit_test_setup(restore_gids__default_gid_elsewhere__stays_there, start),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
