// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/texts.hpp"

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::face;

namespace {

void guid_text__number__has_four_groups(void**) {
  assert_string_equal(guid_text(0x505400FFFE123456).c_str(), "5054:00ff:fe12:3456\n");
  assert_string_equal(guid_text(0).c_str(), "0000:0000:0000:0000\n");
}

void gid_text__ipv4__is_mapped(void**) {
  const uint8_t gid[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 9, 0, 1};
  assert_string_equal(gid_text(gid).c_str(), "0000:0000:0000:0000:0000:ffff:0a09:0001\n");
}

void rate_text__speeds__are_the_kernels(void**) {
  assert_string_equal(rate_text(1, 1).c_str(), "2.5 Gb/sec (1X SDR)\n");
  assert_string_equal(rate_text(1, 2).c_str(), "10 Gb/sec (4X SDR)\n");
  assert_string_equal(rate_text(16, 2).c_str(), "56 Gb/sec (4X FDR)\n");
  assert_string_equal(rate_text(32, 1).c_str(), "25 Gb/sec (1X EDR)\n");
  assert_string_equal(rate_text(32, 2).c_str(), "100 Gb/sec (4X EDR)\n");
  assert_string_equal(rate_text(64, 2).c_str(), "200 Gb/sec (4X HDR)\n");
  assert_string_equal(rate_text(128, 2).c_str(), "400 Gb/sec (4X NDR)\n");
  assert_string_equal(rate_text(256, 4).c_str(), "1600 Gb/sec (8X XDR)\n");
  // An unknown number is the slowest.
  assert_string_equal(rate_text(77, 77).c_str(), "2.5 Gb/sec (1X SDR)\n");
}

void state_text__down__says_so(void**) {
  assert_string_equal(state_text(true).c_str(), "4: ACTIVE\n");
  assert_string_equal(state_text(false).c_str(), "1: DOWN\n");
  assert_string_equal(physical_state_text(true).c_str(), "5: LinkUp\n");
  assert_string_equal(physical_state_text(false).c_str(), "3: Disabled\n");
}

void cpu_mask_text__lists__are_masks(void**) {
  assert_string_equal(cpu_mask_text("").c_str(), "00000000\n");
  assert_string_equal(cpu_mask_text("0").c_str(), "00000001\n");
  assert_string_equal(cpu_mask_text("0-3,8").c_str(), "0000010f\n");
  assert_string_equal(cpu_mask_text("0-15,32-47").c_str(), "0000ffff,0000ffff\n");
  assert_string_equal(cpu_mask_text("64").c_str(), "00000001,00000000,00000000\n");
  // Malformed lists end where they are malformed.
  assert_string_equal(cpu_mask_text("1,x").c_str(), "00000002\n");
  assert_string_equal(cpu_mask_text("3-1").c_str(), "00000000\n");
  assert_string_equal(cpu_mask_text("99999999999").c_str(), "00000000\n");
}

void pci_texts__function__is_named_as_the_kernel_does(void**) {
  assert_string_equal(pci_name(0, 0x3B, 0, 1).c_str(), "0000:3b:00.1");
  assert_string_equal(pci_speed_text(320).c_str(), "32.0 GT/s PCIe\n");
  assert_string_equal(pci_speed_text(25).c_str(), "2.5 GT/s PCIe\n");
  assert_string_equal(pci_speed_text(0).c_str(), "Unknown\n");
  assert_string_equal(hexadecimal_text(0x15B3, 4).c_str(), "0x15b3\n");
  assert_string_equal(hexadecimal_text(0x20000, 6).c_str(), "0x020000\n");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(guid_text__number__has_four_groups),
      cmocka_unit_test(gid_text__ipv4__is_mapped),
      cmocka_unit_test(rate_text__speeds__are_the_kernels),
      cmocka_unit_test(state_text__down__says_so),
      cmocka_unit_test(cpu_mask_text__lists__are_masks),
      cmocka_unit_test(pci_texts__function__is_named_as_the_kernel_does),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
