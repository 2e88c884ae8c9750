// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The names that open the ports of a machine, and the lines of dat.conf for other machines.
#include <unistd.h>

#include <cstdio>
#include <initializer_list>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tools/dapple-info/dead_lines.hpp"
#include "tools/dapple-info/ports.hpp"
#include "tools/dat/silence.hpp"
#include "tools/report/table.hpp"

using namespace dapple;
using namespace dapple::tools;

namespace {

registry::ConfEntry line(const char* name, const char* params, const char* library = "libdaplofa.so.2") {
  registry::ConfEntry made;
  made.ia_name = name;
  made.api = {2, 0};
  made.is_default = true;
  made.library = library;
  made.ia_params = params;
  return made;
}

std::vector<registry::RdmaPort> machine() {
  return {{"mlx5_0", 1, "eth2", false, {}},
          {"mlx5_0", 2, "eth3", true, {"10.0.0.3", "fe80::3"}},
          {"mlx5_1", 1, "", true, {}},
          {"rxe0", 1, "d0", true, {"10.9.0.1"}}};
}

void names__by_line_or_automatic() {
  registry::ConfEntry for_threads = line("threads", "d0 0");
  for_threads.is_thread_safe = true;
  registry::ConfEntry of_12 = line("of-1.2", "d0 0");
  of_12.api = {1, 2};
  const auto ports = named_ports(
      machine(), {for_threads, of_12, line("other", "ib0 0"), line("mine", "mlx5_0 2"), line("later", "eth3 0")});
  CHECK(ports.size() == 4);
  CHECK_EQUAL(ports[0].ia, std::string("ofa-v2-eth2"));
  CHECK_EQUAL(ports[1].ia, std::string("mine"));
  CHECK_EQUAL(ports[2].ia, std::string());
  CHECK_EQUAL(ports[3].ia, std::string("ofa-v2-d0"));
  CHECK_EQUAL(names_of(ports), std::string("mine (mlx5_0, eth3), ofa-v2-d0 (rxe0, d0)"));
  CHECK(is_of_active_port(ports, "mine") && !is_of_active_port(ports, "ofa-v2-eth2") && !is_of_active_port(ports, ""));
}

void names__of_what_people_type() {
  const auto ports = named_ports(machine(), {});
  CHECK_EQUAL(ia_of(ports, "rxe0"), std::string("ofa-v2-d0"));
  CHECK_EQUAL(ia_of(ports, "d0"), std::string("ofa-v2-d0"));
  CHECK_EQUAL(ia_of(ports, "10.9.0.1"), std::string("ofa-v2-d0"));
  CHECK_EQUAL(ia_of(ports, "fe80::3"), std::string("ofa-v2-eth3"));
  // The active port.
  CHECK_EQUAL(ia_of(ports, "mlx5_0"), std::string("ofa-v2-eth3"));
  CHECK_EQUAL(ia_of(ports, "eth2"), std::string("ofa-v2-eth2"));
  // A port without a network device has no name; and a name that does not exist.
  CHECK_EQUAL(ia_of(ports, "mlx5_1"), std::string());
  CHECK_EQUAL(ia_of(ports, "rxe1"), std::string());
  CHECK_EQUAL(ia_of(ports, ""), std::string());
}

void dead_lines__name_what_is_not_here() {
  const std::vector<std::string> here = {"rxe0", "d0", "lo", "10.9.0.1", "node1"};
  const auto dead = [&here](const char* params, const char* library = "libdaplofa.so.2") {
    return info::is_dead(line("x", params, library), here);
  };
  for (const char* params : {"ib0 0", "eth2 0", "mlx4_0 1", "10.9.0.2 0", "fe80::1 0"}) CHECK(dead(params));
  for (const char* params : {"d0 0", "rxe0 1", "rxe0 2", "10.9.0.1 0", "node1 0", "storage.example.org 0", ""})
    CHECK(!dead(params));
  CHECK(dead("mlx4_0 1", "/usr/lib/libdaploucm.so.2") && dead("ib0 0", "libdaplcma.so.1"));
  // The ia_params of another vendor's provider cannot be judged.
  CHECK(!dead("ib0 0", "/opt/vendor/lib/libother.so"));
}

void dead_lines__this_machine_has_a_loopback() {
  const std::vector<std::string> here = info::names_here();
  CHECK(!info::is_dead(line("x", "lo 0"), here));
  CHECK(info::is_dead(line("x", "nosuchdev0 0"), here));
}

void ports__speed_of_width_and_lanes() {
  CHECK_EQUAL(info::gbit_s_of(1, 1), 2.5);
  CHECK_EQUAL(info::gbit_s_of(2, 32), 100.0);
  CHECK_EQUAL(info::gbit_s_of(2, 16), 56.0);
  CHECK_EQUAL(info::gbit_s_of(16, 64), 100.0);
  CHECK_EQUAL(info::gbit_s_of(0, 0), 0.0);
  CHECK_EQUAL(info::gbit_s_of(3, 5), 0.0);
}

void ports__as_rows_and_as_json() {
  info::Port port;
  port.number = 1;
  port.mtu_bytes = 4096;
  port.gbit_s = 100;
  port.gids = {{3, "RoCE v2", "::ffff:10.9.0.1"}};
  info::add_names(port, "rxe0", named_ports(machine(), {}));
  info::Rows ports{{"DEVICE", "PORT", "NETDEV", "MTU", "SPEED", "OPEN AS", "ADDRESSES"}};
  info::Rows gids{{"DEVICE", "PORT", "INDEX", "TYPE", "GID"}};
  info::add_port_rows("rxe0", {port}, ports, gids);
  CHECK(format_table(ports).find("rxe0    1     d0      4096  100 Gb/s  ofa-v2-d0  10.9.0.1\n") != std::string::npos);
  CHECK(format_table(gids).find("rxe0    1     3      RoCE v2  ::ffff:10.9.0.1\n") != std::string::npos);
  const std::string json = document_of(info::port_as_json(port));
  CHECK(json.find("\"mtu_bytes\": 4096,\n  \"speed_gbit_s\": 100.0,\n  \"open_as\": \"ofa-v2-d0\"") !=
        std::string::npos);
  // Without an address no name opens it.
  info::Port down;
  down.number = 1;
  info::add_names(down, "mlx5_0", named_ports(machine(), {}));
  CHECK(down.netdev == "eth2" && down.ia.empty());
}

// Text on standard error appears before and after, but not in between.
void silence__ends() {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  std::fputs("a", stderr);
  {
    const Silence silence;
    std::fputs("b", stderr);
    CHECK(write(STDERR_FILENO, "c", 1) == 1);
  }
  std::fputs("d", stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  close(ends[1]);
  char said[8] = {};
  CHECK(read(ends[0], said, sizeof said - 1) == 2);
  close(ends[0]);
  CHECK_EQUAL(std::string(said), std::string("ad"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(names__by_line_or_automatic),
      TEST(names__of_what_people_type),
      TEST(dead_lines__name_what_is_not_here),
      TEST(dead_lines__this_machine_has_a_loopback),
      TEST(ports__speed_of_width_and_lanes),
      TEST(ports__as_rows_and_as_json),
      TEST(silence__ends),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
