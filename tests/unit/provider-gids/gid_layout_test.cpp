// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/gids/gid_layout.hpp"

#include <arpa/inet.h>
#include <string.h>

#include <algorithm>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using gids::GidLayout;
using gids::GidPlan;
using soft::DeviceInfo;
using soft::GidType;

namespace {

constexpr char kLinkLocal[] = "fe80::1";
constexpr char kFirst[] = "::ffff:10.0.0.1";
constexpr char kSecond[] = "::ffff:10.0.0.2";
constexpr char kSixth[] = "fd00::1";

// dappled's own table, with the default GID.
DeviceInfo table;
GidPlan plan;
GidLayout layout;

void put(uint32_t index, const char* gid) {
  soft::GidEntry& entry = table.gids[index];
  entry.valid = 1;
  entry.netdev_index = 7;
  assert_int_equal(inet_pton(AF_INET6, gid, entry.gid), 1);
}

void remove(uint32_t index) {
  table.gids[index] = {};
  table.gids[index].base_index = static_cast<uint8_t>(index);
}

int start(void**) {
  table = {};
  table.guid = 5;
  for (uint32_t i = 0; i < soft::kMaxGids; i++) remove(i);
  put(0, kLinkLocal);
  layout = {};
  return 0;
}

void read(const char* text) {
  soft::Problem problem;
  assert_true(gids::read_show_gids(text, plan, problem));
}

uint64_t used = 0;  // bits of indexes that are empty and have users

DeviceInfo shown() {
  uint64_t free = 0;
  for (uint32_t i = 0; i < soft::kMaxGids; i++) free |= table.gids[i].valid == 0 ? uint64_t{1} << i : 0;
  DeviceInfo device = table;
  layout.show({plan.rows, plan.row_count}, free & ~used, device);
  return device;
}

void expect_entry(const DeviceInfo& device, uint32_t index, const char* gid, GidType type, uint32_t base_index) {
  uint8_t wanted[16];
  assert_int_equal(inet_pton(AF_INET6, gid, wanted), 1);
  const soft::GidEntry& entry = device.gids[index];
  assert_int_equal(entry.valid, 1);
  assert_memory_equal(entry.gid, wanted, sizeof wanted);
  assert_int_equal(static_cast<int>(entry.type), static_cast<int>(type));
  assert_int_equal(entry.base_index, base_index);
  assert_int_equal(entry.netdev_index, 7);
}

void expect_twins(const DeviceInfo& device, uint32_t index, const char* gid, uint32_t base_index) {
  expect_entry(device, index, gid, GidType::kRoceV1, base_index);
  expect_entry(device, index + 1, gid, GidType::kRoceV2, base_index);
}

uint32_t count_of(const DeviceInfo& device) {
  return static_cast<uint32_t>(
      std::count_if(device.gids, device.gids + soft::kMaxGids, [](const auto& entry) { return entry.valid != 0; }));
}

void twin__table__as_connectx(void**) {
  put(1, kFirst);
  put(3, kSixth);
  DeviceInfo device = table;
  gids::twin(device);
  expect_twins(device, 0, kLinkLocal, 0);
  expect_twins(device, 2, kFirst, 1);
  assert_int_equal(device.gids[4].valid, 0);
  assert_int_equal(device.gids[4].base_index, 2);
  expect_twins(device, 6, kSixth, 3);
  assert_int_equal(count_of(device), 6);
}

constexpr char kConnectx[] =
    "mlx5_0 1 0 fe80::9 v1 eth0\nmlx5_0 1 1 fe80::9 v2 eth0\n"
    "mlx5_0 1 2 fd00::1 v1 eth0\nmlx5_0 1 3 fd00::1 v2 eth0\n"
    "mlx5_0 1 4 ::ffff:10.0.0.2 10.0.0.2 v1 eth0\nmlx5_0 1 5 ::ffff:10.0.0.2 10.0.0.2 v2 eth0\n";

void show__addresses_of_the_plan__its_indexes(void**) {
  read(kConnectx);
  put(1, kFirst);
  put(2, kSecond);
  put(3, kSixth);
  const DeviceInfo device = shown();
  expect_twins(device, 0, kLinkLocal, 0);
  expect_twins(device, 2, kSixth, 3);
  expect_twins(device, 4, kSecond, 2);
  // The plan's only IPv4 address is one of this netdev.
  expect_twins(device, 6, kFirst, 1);
  assert_int_equal(count_of(device), 8);
}

void show__other_addresses__indexes_of_their_kind(void**) {
  read(kConnectx);
  put(1, kFirst);
  const DeviceInfo device = shown();
  expect_twins(device, 0, kLinkLocal, 0);
  expect_twins(device, 4, kFirst, 1);
  assert_int_equal(count_of(device), 4);
}

void show__address_comes_later__others_stay(void**) {
  read(kConnectx);
  put(1, kFirst);
  shown();
  put(2, kSecond);
  const DeviceInfo device = shown();
  expect_twins(device, 4, kFirst, 1);
  expect_twins(device, 6, kSecond, 2);
}

void show__address_gone__indexes_are_free_without_users(void**) {
  read(kConnectx);
  put(1, kFirst);
  shown();
  remove(1);
  used = 1 << 1;
  put(2, kSecond);
  DeviceInfo device = shown();
  assert_int_equal(device.gids[5].valid, 0);
  assert_int_equal(device.gids[5].base_index, 1);
  expect_twins(device, 6, kSecond, 2);
  used = 0;
  put(3, "::ffff:10.0.0.3");
  device = shown();
  // Now the indexes are those of an address of this netdev, which keeps the ones that it has got.
  expect_twins(device, 6, kSecond, 2);
  expect_twins(device, 8, "::ffff:10.0.0.3", 3);
  remove(2);
  put(4, kSecond);
  device = shown();
  expect_twins(device, 4, kSecond, 4);
}

void show__entry_has_another_address__it_finds_its_own_indexes(void**) {
  read(kConnectx);
  put(1, kFirst);
  shown();
  put(1, kSixth);
  const DeviceInfo device = shown();
  expect_twins(device, 2, kSixth, 1);
  assert_int_equal(device.gids[4].valid, 0);
}

void show__plan_without_v1__no_twins(void**) {
  read("rxe0 1 0 fe80::9 v2\nrxe0 1 7 ::ffff:10.9.9.9 v2\n");
  put(1, kFirst);
  put(2, kSecond);
  const DeviceInfo device = shown();
  expect_entry(device, 0, kLinkLocal, GidType::kRoceV2, 0);
  expect_entry(device, 7, kFirst, GidType::kRoceV2, 1);
  expect_entry(device, 1, kSecond, GidType::kRoceV2, 2);
  assert_int_equal(count_of(device), 3);
}

void show__plan_and_addresses_fill_the_table__rest_has_no_index(void**) {
  read("a 1 0 fe80::9 v1\na 1 1 fe80::9 v2\n");
  for (uint32_t i = 1; i < soft::kMaxGids; i++) {
    char gid[40];
    snprintf(gid, sizeof gid, "fd00::%x", i);
    put(i, gid);
  }
  const DeviceInfo device = shown();
  assert_int_equal(count_of(device), soft::kMaxGids);
  expect_twins(device, 62, "fd00::1f", 31);
}

soft::AnnounceGidsRequest announced(const DeviceInfo& device, uint32_t generation) {
  soft::AnnounceGidsRequest known;
  known.guid = device.guid;
  known.generation = generation;
  std::copy_n(device.gids, soft::kMaxGids, known.gids);
  return known;
}

void restore__next_dappled__same_indexes(void**) {
  read(kConnectx);
  put(1, kFirst);
  shown();
  put(2, kSecond);
  const DeviceInfo before = shown();
  layout = {};
  layout.restore(announced(before, 3), table);
  const DeviceInfo device = shown();
  expect_twins(device, 4, kFirst, 1);
  expect_twins(device, 6, kSecond, 2);
  // An older announcement changes nothing.
  DeviceInfo older = before;
  std::fill_n(older.gids, soft::kMaxGids, soft::GidEntry{});
  layout.restore(announced(older, 2), table);
  expect_twins(shown(), 4, kFirst, 1);
}

void restore__garbage__does_no_harm(void**) {
  read(kConnectx);
  put(1, kFirst);
  soft::AnnounceGidsRequest known = announced(table, 3);
  for (soft::GidEntry& entry : known.gids) {
    entry.valid = 1;
    entry.base_index = UINT8_MAX;
    entry.type = static_cast<GidType>(77);
  }
  known.gids[9].base_index = 1;
  memcpy(known.gids[9].gid, table.gids[1].gid, 16);
  layout.restore(known, table);
  const DeviceInfo device = shown();
  expect_entry(device, 9, kFirst, GidType::kRoceV2, 1);
  expect_twins(device, 0, kLinkLocal, 0);
  assert_int_equal(count_of(device), 3);
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test_setup(twin__table__as_connectx, start),
      cmocka_unit_test_setup(show__addresses_of_the_plan__its_indexes, start),
      cmocka_unit_test_setup(show__other_addresses__indexes_of_their_kind, start),
      cmocka_unit_test_setup(show__address_comes_later__others_stay, start),
      cmocka_unit_test_setup(show__address_gone__indexes_are_free_without_users, start),
      cmocka_unit_test_setup(show__entry_has_another_address__it_finds_its_own_indexes, start),
      cmocka_unit_test_setup(show__plan_without_v1__no_twins, start),
      cmocka_unit_test_setup(show__plan_and_addresses_fill_the_table__rest_has_no_index, start),
      cmocka_unit_test_setup(restore__next_dappled__same_indexes, start),
      cmocka_unit_test_setup(restore__garbage__does_no_harm, start),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
