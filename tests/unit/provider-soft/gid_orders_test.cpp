// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/gid_orders.hpp"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "provider/system/owned_fd.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::dappled;

namespace {

Netdevs netdevs;
std::unique_ptr<DeviceTable> table;
std::unique_ptr<GidOrders> orders;
soft::Problem problem;

void add_netdev(uint32_t index, const char* name, uint8_t last) {
  Netdev& netdev = netdevs.devices[netdevs.count++];
  netdev = {};
  netdev.index = index;
  strcpy(netdev.name, name);
  netdev.up = netdev.ethernet = true;
  netdev.address_count = 1;
  const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, last};
  memcpy(netdev.addresses[0], gid, sizeof gid);
}

int start(void**) {
  netdevs.count = 0;
  add_netdev(3, "eth0", 1);
  add_netdev(4, "eth1", 2);
  table = std::make_unique<DeviceTable>(1);
  table->update(netdevs);
  orders = std::make_unique<GidOrders>(*table);
  return 0;
}

uint32_t take(const std::string& text) {
  const soft::OwnedFd file(memfd_create("gids", 0));
  problem.clear();
  if (write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return GidOrders::kOwn;
  return orders->take(file.get(), problem);
}

soft::DeviceInfo shown(uint32_t order, uint32_t device = 0) {
  soft::DeviceInfo info = table->at(device);
  orders->show(order, info);
  return info;
}

constexpr char kFile[] = "a 1 7 ::ffff:10.0.0.1 v2\n";

void take__same_table_twice__one_order(void**) {
  const uint32_t first = take(kFile);
  assert_true(first > GidOrders::kTwins);
  assert_int_equal(take(std::string("# the same\n") + kFile), first);
  const uint32_t other = take("a 1 8 ::ffff:10.0.0.1 v2\n");
  assert_int_not_equal(other, first);
  orders->leave(first);
  assert_int_equal(shown(first).gids[7].valid, 1);
  orders->leave(first);
  // The number is free.
  assert_int_equal(take("a 1 9 ::ffff:10.0.0.1 v2\n"), first);
  assert_int_equal(shown(first).gids[7].valid, 0);
  assert_int_equal(shown(first).gids[9].valid, 1);
}

void take__wrong_file__line(void**) {
  assert_int_equal(take("a 1 0 ::1\n"), GidOrders::kOwn);
  assert_string_equal(problem.line, "the file of DAPPLE_GIDS: line 1: only 4 columns of DEV, PORT, INDEX, GID and VER");
  assert_int_equal(take(std::string(300'000, '\n')), GidOrders::kOwn);
  assert_int_equal(problem.error, EFBIG);
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(orders->take(ends[0], problem), GidOrders::kOwn);
  assert_int_equal(problem.error, EINVAL);
  close(ends[0]);
  close(ends[1]);
}

void take__too_many__is_refused(void**) {
  for (uint32_t i = GidOrders::kTwins + 1; i < GidOrders::kMax; i++) {
    assert_int_equal(take("a 1 " + std::to_string(i) + " ::1 v2\n"), i);
  }
  assert_int_equal(take("a 1 63 ::1 v2\n"), GidOrders::kOwn);
  assert_int_equal(problem.error, EBUSY);
}

void show__each_device__its_part_of_the_file(void**) {
  const uint32_t order = take("a 1 7 ::ffff:10.9.9.1 v2\n");
  assert_int_equal(shown(order, 0).gids[7].gid[15], 1);
  // The file lacks the second device.
  assert_int_equal(shown(order, 1).gids[1].gid[15], 2);
  const uint32_t both = take("a 1 7 ::ffff:10.9.9.1 v2\na 2 5 ::ffff:10.9.9.2 v2\n");
  assert_int_equal(shown(both, 0).gids[7].gid[15], 1);
  assert_int_equal(shown(both, 1).gids[5].gid[15], 2);
}

void index_of__entry__index_of_roce_v2(void**) {
  assert_int_equal(orders->index_of(GidOrders::kOwn, table->at(0), 1), 1);
  assert_int_equal(orders->index_of(GidOrders::kTwins, table->at(0), 1), 3);
  assert_int_equal(orders->index_of(GidOrders::kTwins, table->at(0), 40), soft::kMaxGids);
  const uint32_t order = take("a 1 9 ::ffff:10.0.0.1 v1\na 1 4 ::ffff:10.0.0.1 v2\n");
  assert_int_equal(orders->index_of(order, table->at(0), 1), 4);
}

void restore__of_last_dappled__same_indexes(void**) {
  const uint32_t order = take(kFile);
  soft::AnnounceGidsRequest known;
  known.index = table->at(0).index;
  known.guid = table->at(0).guid;
  known.generation = 9;
  soft::DeviceInfo before = table->at(0);
  std::swap(before.gids[0], before.gids[30]);
  std::swap(before.gids[1], before.gids[31]);
  std::copy_n(before.gids, soft::kMaxGids, known.gids);
  orders->restore(order, known, table->at(0));
  assert_int_equal(shown(order).gids[31].gid[15], 1);
  assert_int_equal(shown(order).gids[7].valid, 0);
  known.guid++;
  known.generation++;
  orders->restore(order, known, table->at(0));
  orders->restore(GidOrders::kOwn, known, table->at(0));
  assert_int_equal(shown(order).gids[31].gid[15], 1);
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test_setup(take__same_table_twice__one_order, start),
      cmocka_unit_test_setup(take__wrong_file__line, start),
      cmocka_unit_test_setup(take__too_many__is_refused, start),
      cmocka_unit_test_setup(show__each_device__its_part_of_the_file, start),
      cmocka_unit_test_setup(index_of__entry__index_of_roce_v2, start),
      cmocka_unit_test_setup(restore__of_last_dappled__same_indexes, start),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
