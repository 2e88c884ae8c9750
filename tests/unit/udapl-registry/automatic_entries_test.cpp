// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The ports in a tree with the layout of sysfs, and the entries made from ports.
#include "udapl/registry/configuration/automatic_entries.hpp"

#include <filesystem>
#include <initializer_list>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/scratch.hpp"

using namespace dapple::registry;

namespace {

void put(const TemporaryFolder& root, const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(root.path() + "/" + path).parent_path());
  root.write(path, content + "\n");
}

void put_port(const TemporaryFolder& root, const std::string& device, const char* number, const char* state,
              const char* gid, const char* netdev) {
  const std::string port = "class/infiniband/" + device + "/ports/" + number;
  put(root, port + "/state", state);
  put(root, port + "/gids/0", gid);
  if (netdev) put(root, port + "/gid_attrs/ndevs/0", netdev);
}

void put_netdev(const TemporaryFolder& root, const std::string& name, const char* type, const char* address) {
  put(root, "class/net/" + name + "/type", type);
  put(root, "class/net/" + name + "/address", address);
}

std::string text_of(const std::vector<RdmaPort>& ports) {
  std::string text;
  for (const RdmaPort& port : ports)
    text += port.device + "/" + std::to_string(port.number) + "=" + port.netdev + (port.is_active ? "+ " : "- ");
  return text;
}

constexpr const char* kNoGid = "0000:0000:0000:0000:0000:0000:0000:0000";

void rdma_ports__in_the_order_of_names_and_numbers() {
  const TemporaryFolder root;
  put_port(root, "mlx5_10", "1", "4: ACTIVE", kNoGid, "eth10");
  put_port(root, "mlx5_2", "2", "1: DOWN", kNoGid, "eth3");
  put_port(root, "mlx5_2", "1", "4: ACTIVE", kNoGid, "eth2");
  CHECK_EQUAL(text_of(rdma_ports(root.path())), "mlx5_2/1=eth2+ mlx5_2/2=eth3- mlx5_10/1=eth10+ ");
}

void rdma_ports__infiniband_and_iwarp_go_by_hardware_address() {
  const TemporaryFolder root;
  put_port(root, "mlx4_0", "1", "4: ACTIVE", "fe80:0000:0000:0000:0002:c903:0000:1491", nullptr);
  put_port(root, "siw0", "1", "4: ACTIVE", "0211:2233:4455:0000:0000:0000:0000:0000", nullptr);
  put_port(root, "none0", "1", "4: ACTIVE", "0211:2233:4466:0000:0000:0000:0000:0000", nullptr);
  put_netdev(root, "eth0", "1", "02:11:22:33:44:55");
  put_netdev(root, "ib0", "32", "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:14:91");
  put_netdev(root, "odd0", "1", "02:zz");
  put_netdev(root, "tun0", "65534", "");
  CHECK_EQUAL(text_of(rdma_ports(root.path())), "mlx4_0/1=ib0+ none0/1=+ siw0/1=eth0+ ");
}

void rdma_ports__addresses_are_those_of_the_network_device() {
  const TemporaryFolder root;
  put_port(root, "rxe0", "1", "4: ACTIVE", kNoGid, "lo");
  const std::vector<RdmaPort> ports = rdma_ports(root.path());
  CHECK_EQUAL(ports.size(), 1U);
  CHECK(!ports.empty() && !ports[0].addresses.empty() && ports[0].addresses[0] == "127.0.0.1");
}

void rdma_ports__nothing_to_see() {
  const TemporaryFolder root;
  CHECK(rdma_ports(root.path()).empty());
  CHECK(rdma_ports(root.path() + "/absent").empty());
  std::filesystem::create_directories(root.path() + "/class/infiniband/bare0");
  CHECK(rdma_ports(root.path()).empty());
}

RdmaPort port(const char* device, uint32_t number, const char* netdev, bool is_active = true,
              std::vector<std::string> addresses = {"10.0.0.1"}) {
  return {device, number, netdev, is_active, std::move(addresses)};
}

ConfEntry line(const char* ia_params) {
  ConfEntry entry;
  entry.ia_params = ia_params;
  return entry;
}

std::string listed(const std::vector<RdmaPort>& ports, const std::vector<ConfEntry>& lines = {}) {
  std::string names;
  for (const AutomaticEntry& made : automatic_entries(ports, lines))
    if (made.is_listed) names += made.entry.ia_name + " ";
  return names;
}

void automatic_entries__four_names_for_either_thread_safety() {
  std::string names;
  for (const AutomaticEntry& made : automatic_entries({port("mlx5_0", 2, "eth2")}, {})) {
    const ConfEntry& entry = made.entry;
    names += entry.ia_name + (entry.is_thread_safe ? "(t)" : "") + (made.is_listed ? "+ " : " ");
    CHECK(entry.is_default);
    CHECK_EQUAL(entry.api.major, 2U);
    CHECK_EQUAL(entry.api.minor, 0U);
    CHECK_EQUAL(entry.library, "libdaplofa.so.2");
    CHECK_EQUAL(entry.ia_params, "eth2 0");
    CHECK_EQUAL(entry.line, 0U);
  }
  CHECK_EQUAL(names,
              "ofa-v2-eth2+ ofa-v2-eth2(t) ofa-v2-mlx5_0-2 ofa-v2-mlx5_0-2(t) ofa-v2-mlx5_0-2s ofa-v2-mlx5_0-2s(t) "
              "ofa-v2-mlx5_0-2u ofa-v2-mlx5_0-2u(t) ");
}

void automatic_entries__only_what_can_be_used_is_listed() {
  CHECK_EQUAL(listed({port("a", 1, "eth0", false), port("b", 1, "eth1", true, {}), port("c", 1, "", true),
                      port("d", 1, "eth3")}),
              "ofa-v2-eth3 ");
  CHECK(automatic_entries({port("c", 1, "")}, {}).empty());
}

void automatic_entries__one_of_two_devices_on_a_network_device() {
  CHECK_EQUAL(listed({port("rxe0", 1, "eth0"), port("siw0", 1, "eth0")}), "ofa-v2-eth0 ");
}

void automatic_entries__port_that_a_line_names_is_not_listed_again() {
  const std::vector<RdmaPort> ports = {port("rxe0", 1, "eth0", true, {"10.0.0.1", "fd09::1"})};
  for (const char* params : {"eth0 0", "eth0", "rxe0 1", "10.0.0.1 0", "fd09::1 0", "rxe0 1 coherence=cpu"})
    CHECK_EQUAL(listed(ports, {line("other0 0"), line(params)}), "");
  for (const char* params : {"", "rxe0 2", "rxe0 0", "eth00 0", "10.0.0.2 0", "1"})
    CHECK_EQUAL(listed(ports, {line(params)}), "ofa-v2-eth0 ");
  CHECK_EQUAL(automatic_entries(ports, {line("eth0 0")}).size(), 8U);
}

void names_no_usable_port__is_said_of_the_customary_form_only() {
  const std::vector<RdmaPort> ports = {port("rxe0", 1, "eth0", true, {"10.0.0.1", "fd09::1"}),
                                       port("down0", 1, "eth1", false), port("bare0", 1, "eth2", true, {})};
  for (const char* params : {"eth0 0", "rxe0 1", "10.0.0.1 0", "fd09::1 0", "rxe0 1 coherence=cpu"})
    CHECK(!names_no_usable_port(line(params), ports));
  for (const char* params : {"eth9 0", "rxe0 2", "mlx4_0 1", "eth1 0", "down0 1", "eth2 0", "10.0.0.2 0", "mic0:ib 1"})
    CHECK(names_no_usable_port(line(params), ports));
  for (const char* params : {"", "0x7ffe0000", "eth0", "port=1 mode=x"})
    CHECK(!names_no_usable_port(line(params), ports));
}

// For 1.2: the same names for its own provider, and OFED's.
std::string ofeds(const std::vector<RdmaPort>& ports) {
  std::string text;
  for (const AutomaticEntry& made : automatic_entries(ports, {}, kAutomatic12)) {
    const ConfEntry& entry = made.entry;
    CHECK_EQUAL(entry.api.major, 1U);
    CHECK_EQUAL(entry.api.minor, 2U);
    CHECK_EQUAL(entry.library, "libdaplcma.so.1");
    if (entry.ia_name != "OpenIB-cma") continue;
    CHECK(!made.is_listed);
    text += entry.ia_params + (entry.is_thread_safe ? " t; " : "; ");
  }
  return text;
}

void first_port__is_one_name_more() {
  CHECK_EQUAL(ofeds({port("a", 1, "eth0", false), port("b", 1, ""), port("c", 1, "eth2"), port("d", 1, "eth3")}),
              "eth2 0; eth2 0 t; ");
  CHECK_EQUAL(ofeds({port("b", 1, ""), port("a", 1, "eth0", false)}), "eth0 0; eth0 0 t; ");
  CHECK_EQUAL(ofeds({port("b", 1, "")}), "");
  CHECK_EQUAL(ofeds({}), "");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(rdma_ports__in_the_order_of_names_and_numbers),
      TEST(rdma_ports__infiniband_and_iwarp_go_by_hardware_address),
      TEST(rdma_ports__addresses_are_those_of_the_network_device),
      TEST(rdma_ports__nothing_to_see),
      TEST(automatic_entries__four_names_for_either_thread_safety),
      TEST(automatic_entries__only_what_can_be_used_is_listed),
      TEST(automatic_entries__one_of_two_devices_on_a_network_device),
      TEST(automatic_entries__port_that_a_line_names_is_not_listed_again),
      TEST(names_no_usable_port__is_said_of_the_customary_form_only),
      TEST(first_port__is_one_name_more),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
