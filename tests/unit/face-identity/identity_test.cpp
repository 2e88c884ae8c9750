// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DAPPLE_AS, and what a device shows with an identity.
#include "provider/face/identity/identity.hpp"

#include <errno.h>
#include <string.h>

#include "provider/face/identity/rail_netdev.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;

namespace {

// One profile, by the name "card".
class OneProfile final : public face::ProfileSource {
 public:
  explicit OneProfile(std::string_view text) : text_(text) {}
  bool read(std::string_view name, std::string_view& text, soft::Problem& problem) override {
    text = text_;
    if (name == "card") return true;
    problem.set(ENOENT, "no such profile");
    return false;
  }

 private:
  std::string_view text_;
};

constexpr std::string_view kCard =
    "name = card_%d\n"
    "rate = 100\n"
    "pci = 0000:17:00.0\n"
    "driver = card\n"
    "srq = no\n"
    "max_srq = 7\n";

face::Identity identity_of(std::string_view spec) {
  OneProfile source(kCard);
  face::Identity identity;
  soft::Problem problem;
  if (!face::read_identity(spec, source, identity, problem)) fail_msg("%s", problem.line);
  return identity;
}

soft::DeviceInfo shown(const face::Identity& identity, uint32_t number) {
  soft::DeviceInfo device;
  device.index = soft::kFirstDeviceIndex + number;
  device.guid = 0x1234;
  strcpy(device.netdev, "eth0");
  face::apply(identity, device);
  return device;
}

void read_identity__words_after_the_profile__replace_its_lines(void**) {
  const face::Identity identity = identity_of("card,rate=400,name=mlx5_%d,max_sge=3");
  assert_int_equal(identity.attributes.active_speed, 128);
  assert_int_equal(identity.attributes.active_width, 2);
  assert_string_equal(identity.name_pattern, "mlx5_%d");
  assert_int_equal(identity.attributes.max_send_sge, 3);
  assert_int_equal(identity.attributes.max_recv_sge, 3);
  assert_string_equal(identity.attributes.profile, "card");
}

void read_identity__a_word_without_equals__continues_the_value(void**) {
  const face::Identity identity = identity_of("card,numa=0,1,cpus=0-3,8-11,rate=25");
  assert_int_equal(identity.numa_node_count, 2);
  assert_string_equal(identity.attributes.cpu_list, "0-3,8-11");
  assert_int_equal(identity.attributes.active_speed, 32);
}

void read_identity__features_that_are_missing__have_no_objects(void**) {
  assert_int_equal(identity_of("card").attributes.max_srq, 0);
  assert_int_equal(identity_of("card,srq=yes").attributes.max_srq, 7);
}

void read_identity__wrong_words__one_line(void**) {
  constexpr struct {
    std::string_view spec;
    const char* line;
  } kCases[] = {
      {"other", "no such profile"},
      {"", "an identity begins with the name of a profile, not with \"\""},
      {"rate=400", "an identity begins with the name of a profile, not with \"rate=400\""},
      {"card,", ""},
      {"card,,", "\"\" is not a line \"key = value\""},
      {"card,nonsense", "\"nonsense\" is not a line \"key = value\""},
      {"card,ratte=1", "unknown key ratte; the nearest is rate"},
      {"card,rate=1", "rate is 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400 or 800 (Gb/s), not 1"},
      {"card,pci=none", ""},
      {"card,driver=", "the identity: a device with a PCI function (pci) needs its driver (driver)"},
      {"card,driver=ice-2.0", ""},
      {"card,driver=../x", "driver is the name of a driver, such as mlx5_core, not ../x"},
      {"card,driver=a/b", "driver is the name of a driver, such as mlx5_core, not a/b"},
      {"card,driver=..", "driver is the name of a driver, such as mlx5_core, not .."},
  };
  OneProfile source(kCard);
  for (const auto& each : kCases) {
    face::Identity identity;
    soft::Problem problem;
    const bool read = face::read_identity(each.spec, source, identity, problem);
    assert_string_equal(problem.line, each.line);
    assert_int_equal(read, each.line[0] == '\0');
    assert_int_equal(problem.error != 0, !read);
  }
}

void read_identity__number_of_devices__after_the_name(void**) {
  assert_int_equal(identity_of("card").rails.count, 0);
  assert_int_equal(identity_of("card:8,name=mlx5_%d").rails.count, 8);
  assert_int_equal(identity_of("card:8,devices=3").rails.count, 3);
  assert_int_equal(identity_of(":64").rails.count, 64);
  assert_string_equal(identity_of(":2").name_pattern, "dapple%d");
  // One netdev alone.
  const face::Identity one = identity_of("card,netdev=eth1");
  assert_int_equal(one.rails.count, 1);
  assert_string_equal(one.rails.netdev, "eth1");
}

void read_identity__wrong_number_of_devices__one_line(void**) {
  const char* const wrong[] = {"card:0", "card:x", "card:65", "card:1000", "card:", "card:-1", "card:8:8", ":", ":1x"};
  for (const char* spec : wrong) {
    OneProfile source(kCard);
    face::Identity identity;
    soft::Problem problem;
    assert_false(face::read_identity(spec, source, identity, problem));
    assert_int_equal(problem.error == 0, 0);
    if (strcmp(spec, "card:8:8") == 0) continue;  // there is no profile "card:8"
    assert_non_null(strstr(problem.line, "the number of devices after the colon is 1 to 64, not "));
  }
}

void apply__rails__count_from_the_first(void**) {
  const face::Identity identity = identity_of("card:4,numa=0,1");
  soft::DeviceInfo device;
  device.index = soft::kFirstRailIndex + 40;
  device.rail = 3;
  face::apply(identity, device);
  assert_string_equal(device.name, "card_3");
  assert_int_equal(device.attributes.numa_node, 1);
  assert_int_equal(device.attributes.pci_bus, 0x47);
}

face::RailNetdev netdev(const char* name, uint32_t addresses) {
  face::RailNetdev made;
  made.name = name;
  made.ipv4 = addresses;
  return made;
}

void check_rails__netdev_or_addresses_are_missing__one_line(void**) {
  face::RailNetdev list[] = {netdev("lo", 1), netdev("eth0", 3), netdev("wlan0", 1)};
  list[0].loopback = true;
  const struct {
    const char* spec;
    const char* line;
  } cases[] = {
      {"card", ""},
      {"card:64", ""},
      {"card:3,netdev=eth0", ""},
      {"card,netdev=wlan0", ""},
      {"card:4,netdev=eth0",
       "eth0 has 3 addresses, and 4 devices need one each; add addresses, take 3 devices, or leave out netdev=eth0 to "
       "use lo"},
      {"card:2,netdev=wlan0",
       "wlan0 has 1 address, and 2 devices need one each; add addresses, take 1 device, or leave out netdev=wlan0 to "
       "use lo"},
      {"card:2,netdev=eht0", "there is no network device eht0 that can have devices; the nearest is eth0"},
  };
  for (const auto& each : cases) {
    soft::Problem problem;
    assert_int_equal(face::check_rails(identity_of(each.spec).rails, list, problem), each.line[0] == '\0');
    assert_string_equal(problem.line, each.line);
  }
}

void apply__each_device__has_its_name_place_and_node(void**) {
  const face::Identity identity = identity_of("card,numa=0,1");
  const soft::DeviceInfo first = shown(identity, 0), second = shown(identity, 1), last = shown(identity, 20);
  assert_string_equal(first.name, "card_0");
  assert_string_equal(second.name, "card_1");
  assert_string_equal(last.name, "card_20");
  assert_int_equal(first.attributes.pci_bus, 0x17);
  assert_int_equal(second.attributes.pci_bus, 0x27);
  assert_int_equal(second.attributes.pci_domain, 0);
  assert_int_equal(last.attributes.pci_bus, 0x57);
  assert_int_equal(last.attributes.pci_domain, 1);
  assert_int_equal(first.attributes.numa_node, 0);
  assert_int_equal(second.attributes.numa_node, 1);
  assert_int_equal(last.attributes.numa_node, 0);
  assert_true(first.attributes.cpu_list[0] != '\0');
  // The rest is the device's.
  assert_int_equal(second.index, soft::kFirstDeviceIndex + 1);
  assert_int_equal(second.guid, 0x1234);
  assert_string_equal(second.netdev, "eth0");
}

void equal__two_readings__are_equal_until_a_word_differs(void**) {
  assert_true(identity_of("card,numa=1") == identity_of("card,numa=1"));
  assert_false(identity_of("card,numa=1") == identity_of("card,numa=0"));
  assert_false(identity_of("card") == identity_of("card,name=other%d"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(read_identity__words_after_the_profile__replace_its_lines),
      cmocka_unit_test(read_identity__a_word_without_equals__continues_the_value),
      cmocka_unit_test(read_identity__features_that_are_missing__have_no_objects),
      cmocka_unit_test(read_identity__wrong_words__one_line),
      cmocka_unit_test(read_identity__number_of_devices__after_the_name),
      cmocka_unit_test(read_identity__wrong_number_of_devices__one_line),
      cmocka_unit_test(apply__rails__count_from_the_first),
      cmocka_unit_test(check_rails__netdev_or_addresses_are_missing__one_line),
      cmocka_unit_test(apply__each_device__has_its_name_place_and_node),
      cmocka_unit_test(equal__two_readings__are_equal_until_a_word_differs),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
