// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The lines of a profile, and what is said about wrong ones.
#include "provider/face/identity/profile.hpp"

#include <errno.h>
#include <string.h>

#include <string>

#include "provider/face/identity/nearest.hpp"
#include "provider/face/identity/profile_keys.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;

namespace {

void read_profile__comments_blanks_and_line_ends__are_skipped(void**) {
  face::Identity identity;
  soft::Problem problem;
  assert_true(
      face::read_profile("# a card\r\n\n \t\n\tfw_ver = 1.2 # of today\r\nboard_id=A#1\nnode_desc =\nvendor_id=0x15B3",
                         "/tmp/own.profile", identity, problem));
  assert_string_equal(identity.attributes.profile, "own");
  assert_string_equal(identity.attributes.fw_ver, "1.2");
  assert_string_equal(identity.attributes.board_id, "A#1");
  assert_string_equal(identity.attributes.node_desc, "");
  assert_int_equal(identity.attributes.vendor_id, 0x15B3);
}

void read_profile__larger_limits_than_the_software_serves__become_its_own(void**) {
  face::Identity identity;
  soft::Problem problem;
  assert_true(face::read_profile("max_qp = 1000000\nmax_qp_wr = 2147483647\nmax_msg_sz=0xffffffff\nmax_sge=100", "card",
                                 identity, problem));
  const soft::DeviceAttributes served;
  assert_int_equal(identity.attributes.max_qp, served.max_qp);
  assert_int_equal(identity.attributes.max_qp_wr, served.max_qp_wr);
  assert_int_equal(identity.attributes.max_msg_sz, served.max_msg_sz);
  assert_int_equal(identity.attributes.max_send_sge, served.max_send_sge);
}

void read_profile__wrong_lines__number_and_reason(void**) {
  const std::string long_text(64, 'x');
  const struct {
    std::string text;
    const char* line;
  } cases[] = {
      {"max_qpp = 3", "card:1: unknown key max_qpp; the nearest is max_qp"},
      {"\n# x\nmax_mr_sise = 4096", "card:3: unknown key max_mr_sise; the nearest is max_mr_size"},
      {"= 3", "card:1: unknown key "},
      {"max_qp = 0", "card:1: max_qp is 1 to 2147483647, not 0"},
      {"max_qp = -1", "card:1: max_qp is 1 to 2147483647, not -1"},
      {"max_qp = 10000000000", "card:1: max_qp is 1 to 2147483647, not 10000000000"},
      {"max_qp = 99999999999999999999", "card:1: max_qp is 1 to 2147483647, not 99999999999999999999"},
      {"max_qp = 0x", "card:1: max_qp is 1 to 2147483647, not 0x"},
      {"max_qp =", "card:1: max_qp is 1 to 2147483647, not "},
      {"vendor_id = 0x1000000", "card:1: vendor_id is 0x0 to 0xffffff, not 0x1000000"},
      {"max_mr_size = 100", "card:1: max_mr_size is 0x1000 to 0xffffffffffffffff, not 100"},
      {"max_msg_sz = 0", "card:1: max_msg_sz is 4096 to 4294967295, not 0"},
      {"num_comp_vectors = 0", "card:1: num_comp_vectors is 1 to 4096, not 0"},
      {"srq = maybe", "card:1: srq is yes or no, not maybe"},
      {"atomics = some", "card:1: atomics is none, hca or global, not some"},
      {"too_long = hangs", "card:1: too_long is completes or refused, not hangs"},
      {"pci = 17:00.0", "card:1: pci is none, or an address such as 0000:17:00.0, not 17:00.0"},
      {"pci = 0000:17:20.0", "card:1: pci is none, or an address such as 0000:17:00.0, not 0000:17:20.0"},
      {"pci = 0000:17:00.0x", "card:1: pci is none, or an address such as 0000:17:00.0, not 0000:17:00.0x"},
      {"pci = 0000:17:00.0", "card: a device with a PCI function (pci) needs its driver (driver)"},
      {"pci_link_speed = 7", "card:1: pci_link_speed is 2.5, 5, 8, 16, 32 or 64 (GT/s), not 7"},
      {"numa = 5000", "card:1: numa is at most 16 NUMA nodes with commas between them, each -1 or 0 to 1023, not 5000"},
      {"numa =", "card:1: numa is at least one NUMA node, not "},
      {"cpus = all", "card:1: cpus is a list of CPUs such as 0-15,32-47, not all"},
      {"name = mlx5", "card:1: name is a name with one %d for the number of the device, such as mlx5_%d, not mlx5"},
      {"name = a/%d", "card:1: name is a name with one %d for the number of the device, such as mlx5_%d, not a/%d"},
      {"name = %d%d", "card:1: name is a name with one %d for the number of the device, such as mlx5_%d, not %d%d"},
      {"name = %s%d", "card:1: name is a name with one %d for the number of the device, such as mlx5_%d, not %s%d"},
      {"fw_ver = " + long_text,
       "card:1: fw_ver is a text of at most 63 ASCII characters, not xxxxxxxxxxxxxxxxxxxxxxxx"},
      {"fw_ver", "card:1: \"fw_ver\" is not a line \"key = value\""},
      {std::string("a\0b", 3), "card:1: the line has bytes that are no text; a profile has lines \"key = value\""},
      {"\x7F"
       "ELF",
       "card:1: the line has bytes that are no text; a profile has lines \"key = value\""},
  };
  for (const auto& each : cases) {
    face::Identity identity;
    soft::Problem problem;
    assert_false(face::read_profile(each.text, "card", identity, problem));
    assert_string_equal(problem.line, each.line);
    assert_int_equal(problem.error, EINVAL);
  }
}

// The messages of long paths keep the number, and have room for the reason.
void read_profile__long_path__keeps_its_end(void**) {
  const std::string path = "/" + std::string(300, 'd') + "/own.profile";
  face::Identity identity;
  soft::Problem problem;
  assert_false(face::read_profile("max_qpp = 3", path, identity, problem));
  assert_non_null(strstr(problem.line, "/own.profile:1: unknown key max_qpp; the nearest is max_qp"));
}

// Random bytes, and profiles with one byte changed: an answer, and a name that ends.
void read_profile__any_bytes__an_answer(void**) {
  uint64_t state = 42;
  const auto random = [&] { return state = state * 6364136223846793005 + 1442695040888963407, state >> 33; };
  const std::string good = "name = card_%d\nrate = 100\npci = 0000:17:00.0\ndriver = x\nmax_sge = 3\nnuma = 0,1\n";
  for (int i = 0; i < 20000; i++) {
    std::string text = good;
    for (uint64_t j = random() % 4; j-- > 0;) text[random() % text.size()] = static_cast<char>(random());
    if (i % 7 == 0) text.resize(random() % text.size());
    face::Identity identity;
    soft::Problem problem;
    const bool read = face::read_profile(text, "card", identity, problem);
    assert_int_equal(read, problem.error == 0);
    assert_true(strnlen(identity.name_pattern, sizeof identity.name_pattern) <= face::kMaxNamePattern);
    assert_non_null(strstr(identity.name_pattern, "%d"));
  }
}

void distance__texts__the_least_number_of_changes(void**) {
  assert_int_equal(face::distance("", ""), 0);
  assert_int_equal(face::distance("abc", "abc"), 0);
  assert_int_equal(face::distance("abc", "abd"), 1);
  assert_int_equal(face::distance("abc", "ac"), 1);
  assert_int_equal(face::distance("kitten", "sitting"), 3);
  assert_int_equal(face::distance(std::string(100, 'a'), "b"), 100);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(read_profile__comments_blanks_and_line_ends__are_skipped),
      cmocka_unit_test(read_profile__larger_limits_than_the_software_serves__become_its_own),
      cmocka_unit_test(read_profile__wrong_lines__number_and_reason),
      cmocka_unit_test(read_profile__long_path__keeps_its_end),
      cmocka_unit_test(read_profile__any_bytes__an_answer),
      cmocka_unit_test(distance__texts__the_least_number_of_changes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
