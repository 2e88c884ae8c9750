// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <string.h>

#include <string>

#include "provider/gids/gid_plan.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using gids::GidPlan;

namespace {

GidPlan plan;
soft::Problem problem;

bool read(std::string_view text) {
  problem.clear();
  return gids::read_show_gids(text, plan, problem);
}

void expect_refused(const char* text, const char* line) {
  assert_false(read(text));
  assert_string_equal(problem.line, line);
  assert_int_equal(problem.error, EINVAL);
}

constexpr char kPrinted[] =
    "DEV     PORT    INDEX   GID                                     IPv4            VER     DEV\n"
    "---     ----    -----   ---                                     ------------    ---     ---\n"
    "mlx5_0  1       0       fe80:0000:0000:0000:5054:00ff:fe12:3456                 v1      eth0\n"
    "mlx5_0  1       1       fe80:0000:0000:0000:5054:00ff:fe12:3456                 v2      eth0\n"
    "mlx5_0  1       2       0000:0000:0000:0000:0000:ffff:0a00:0001 10.0.0.1        v1      eth0\n"
    "mlx5_0  1       3       0000:0000:0000:0000:0000:ffff:0a00:0001 10.0.0.1        v2      eth0\n"
    "mlx5_1  1       1       fd00:0000:0000:0000:0000:0000:0000:0001                 v2      eth1\n"
    "n_gids_found=5\n"
    "\n";

void read__as_printed__each_row(void**) {
  assert_true(read(kPrinted));
  assert_int_equal(plan.device_count, 2);
  assert_int_equal(plan.row_count, 5);
  for (uint8_t i = 0; i < 4; i++) {
    const gids::PlanRow& row = plan.rows[i];
    assert_int_equal(row.device, 0);
    assert_int_equal(row.index, i);
    assert_int_equal(row.address, i / 2);
    assert_int_equal(static_cast<int>(row.type), 1 + i % 2);
  }
  assert_int_equal(plan.rows[3].gid[11], 0xFF);
  assert_int_equal(plan.rows[3].gid[15], 1);
  assert_int_equal(plan.rows[4].device, 1);
  assert_int_equal(plan.rows[4].gid[0], 0xFD);
}

void read__in_disorder__is_sorted(void**) {
  assert_true(read("b 1 5 ::1 v2\r\na 1 3 ::2 V2 eth0\n# a comment\na 2 0 ::3 v2\nb 1 0 ::4 v1 eth9"));
  assert_int_equal(plan.device_count, 3);
  assert_int_equal(plan.rows[0].index, 0);
  assert_int_equal(plan.rows[1].index, 5);
  assert_int_equal(plan.rows[2].device, 1);
  assert_int_equal(plan.rows[3].device, 2);
}

// Netdevs with one MAC, such as VLANs, have one link-local address.
void read__one_gid_of_two_netdevs__two_addresses(void**) {
  assert_true(read("a 1 0 fe80::1 v1 eth0\na 1 1 fe80::1 v2 eth0\na 1 2 fe80::1 v1 vlan\na 1 3 fe80::1 v2 vlan\n"));
  assert_int_equal(plan.rows[0].address, plan.rows[1].address);
  assert_int_equal(plan.rows[2].address, plan.rows[3].address);
  assert_int_not_equal(plan.rows[0].address, plan.rows[2].address);
}

void read__wrong_line__its_number_and_reason(void**) {
  expect_refused("", "it has no line with a GID; show_gids prints such lines");
  expect_refused("DEV PORT INDEX GID\n--- --- --- ---\nn_gids_found=0\n",
                 "it has no line with a GID; show_gids prints such lines");
  expect_refused("\nbogus\n", "line 2: only 1 columns of DEV, PORT, INDEX, GID and VER");
  expect_refused("a 1 0 ::1", "line 1: only 4 columns of DEV, PORT, INDEX, GID and VER");
  expect_refused("a 1 0 ::1 v2\na 0 1 ::2 v2", "line 2: the port 0 is no number from 1 on");
  expect_refused("a 1 64 ::1 v2", "line 1: the index 64 is no number from 0 to 63");
  expect_refused("a 1 -1 ::1 v2", "line 1: the index -1 is no number from 0 to 63");
  expect_refused("a 1 99999999999999999999 ::1 v2", "line 1: the index 99999999999999999999 is no number from 0 to 63");
  expect_refused("a 1 0 10.0.0.1 v2", "line 1: 10.0.0.1 is no GID");
  expect_refused("a 1 0 ::ffff:10.0.0.1 10.0.0.2 v2", "line 1: 10.0.0.2 is not the address of the GID");
  expect_refused("a 1 0 ::ffff:10.0.0.1 10.0.0.1",
                 "line 1: the column VER has neither v1 nor v2, which RoCE devices have");
  expect_refused("a 1 0 ::1 v3", "line 1: the column VER has neither v1 nor v2, which RoCE devices have");
  expect_refused("a 1 0 ::1 v2\na 1 0 ::2 v2", "line 2: the device has the index 0 twice");
  expect_refused("a 1 0 \x1b[2J\xff v2", "line 1: ?[2J? is no GID");
  expect_refused("a b c d e f g h i", "line 1: more than 7 columns");
}

void read__long_word__line_for_people_has_room(void**) {
  const std::string word(5000, 'x');
  assert_false(read("a 1 0 " + word + " v2"));
  assert_true(strlen(problem.line) < sizeof problem.line - 1);
  assert_false(read("a " + word + " 0 ::1 v2"));
  assert_false(read(std::string("a 1 0 ::1\0 v2", 13)));
}

void read__too_many__is_refused(void**) {
  std::string devices;
  for (int i = 0; i < 65; i++) devices += "d" + std::to_string(i) + " 1 0 ::1 v2\n";
  assert_false(read(devices));
  assert_string_equal(problem.line, "line 65: more than 64 devices");
  std::string rows;
  for (int i = 0; i < 1025; i++) rows += "d" + std::to_string(i / 64) + " 1 " + std::to_string(i % 64) + " ::1 v2\n";
  assert_false(read(rows));
  assert_string_equal(problem.line, "line 1025: more than 1024 GIDs");
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test(read__as_printed__each_row),
      cmocka_unit_test(read__in_disorder__is_sorted),
      cmocka_unit_test(read__one_gid_of_two_netdevs__two_addresses),
      cmocka_unit_test(read__wrong_line__its_number_and_reason),
      cmocka_unit_test(read__long_word__line_for_people_has_room),
      cmocka_unit_test(read__too_many__is_refused),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
