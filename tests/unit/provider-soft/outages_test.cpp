// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/outages.hpp"

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint8_t kAddressByte = 0x20;

// Device number `index` of netdev 10 * index, with one address.
DeviceInfo device(uint32_t index) {
  DeviceInfo made;
  made.index = index;
  made.netdev_index = 10 * index;
  made.gids[3].valid = 1;
  made.gids[3].gid[15] = static_cast<uint8_t>(kAddressByte + index);
  return made;
}

bool loses_sent(const Outages& outages, uint32_t netdev_index) {
  Path path;
  path.netdev_index = netdev_index;
  return outages.loses(path);
}

bool loses_received(const Outages& outages, uint32_t netdev_index, uint8_t last_byte) {
  uint8_t destination[16] = {};
  destination[15] = last_byte;
  Arrival arrival;
  arrival.netdev_index = netdev_index;
  arrival.destination = destination;
  return outages.loses(arrival);
}

void begin__one_device__its_packets_are_lost_and_no_others(void**) {
  Outages outages;
  assert_false(outages.is_down(1) || loses_sent(outages, 10) || loses_received(outages, 1, kAddressByte + 1));
  outages.begin(device(1), 100);
  assert_true(outages.is_down(1) && loses_sent(outages, 10));
  assert_false(outages.is_down(2) || loses_sent(outages, 20));
  // By lo, and by its own netdev.
  assert_true(loses_received(outages, 1, kAddressByte + 1));
  assert_true(loses_received(outages, 10, 0));
  assert_false(loses_received(outages, 1, kAddressByte + 2));
  // A place in the list of addresses that is not valid is zero, too.
  assert_false(loses_received(outages, 1, 0));
}

void begin__one_of_several_devices_of_a_netdev__the_others_stay_up(void**) {
  Outages outages;
  DeviceInfo first = device(1), second = device(2);
  first.netdev_index = second.netdev_index = 10;
  first.rails = second.rails = 2;
  outages.begin(first, 100);
  Path path;
  path.netdev_index = 10;
  path.source[15] = kAddressByte + 1;
  assert_true(outages.loses(path) && loses_received(outages, 10, kAddressByte + 1));
  path.source[15] = kAddressByte + 2;
  assert_false(outages.loses(path) || loses_received(outages, 10, kAddressByte + 2));
}

void end_before__each_at_its_time(void**) {
  Outages outages;
  assert_true(outages.next_end() == dapple::roce::kNever);
  outages.begin(device(1), 100);
  outages.begin(device(2), 50);
  assert_int_equal(outages.next_end(), 50);
  assert_false(outages.end_before(49));
  assert_true(outages.end_before(50));
  assert_true(outages.is_down(1) && !outages.is_down(2));
  assert_int_equal(outages.next_end(), 100);
  assert_true(outages.end_before(1000));
  assert_false(outages.is_down(1));
}

void begin__again__the_later_call_counts(void**) {
  Outages outages;
  outages.begin(device(1), 100);
  outages.begin(device(1), 70);
  assert_true(outages.end_before(70));
  assert_false(outages.is_down(1));
}

void begin__too_many_devices__the_rest_stay_up(void**) {
  Outages outages;
  for (uint32_t i = 1; i <= 9; i++) outages.begin(device(i), 100);
  assert_true(outages.is_down(8));
  assert_false(outages.is_down(9));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(begin__one_device__its_packets_are_lost_and_no_others),
      cmocka_unit_test(begin__one_of_several_devices_of_a_netdev__the_others_stay_up),
      cmocka_unit_test(end_before__each_at_its_time),
      cmocka_unit_test(begin__again__the_later_call_counts),
      cmocka_unit_test(begin__too_many_devices__the_rest_stay_up),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
