// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/pci_config.hpp"

#include <string.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::parse_pci_config;
using dapple::provider::PciOrdering;

// A function whose capabilities are power management at 0x40 and PCI Express at `express`.
void make(uint8_t* config, uint8_t express, uint16_t control) {
  memset(config, 0, 256);
  config[0x00] = 0x86;
  config[0x06] = 0x10;
  config[0x34] = 0x40;
  config[0x40] = 0x01;
  config[0x41] = express;
  config[express] = 0x10;
  config[express + 8] = static_cast<uint8_t>(control);
  config[express + 9] = static_cast<uint8_t>(control >> 8);
}

void assert_ordering(const PciOrdering& found, dappledv_answer relaxed_ordering, dappledv_answer no_snoop) {
  assert_int_equal(found.relaxed_ordering, relaxed_ordering);
  assert_int_equal(found.no_snoop, no_snoop);
}

void parse_pci_config__each_bit_alone(void**) {
  uint8_t config[256];
  make(config, 0x60, 0);
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_NO, DAPPLEDV_ANSWER_NO);
  make(config, 0x60, 1 << 4);
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_YES, DAPPLEDV_ANSWER_NO);
  make(config, 0x60, 1 << 11);
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_NO, DAPPLEDV_ANSWER_YES);
  make(config, 0x60, 0xffff & ~(1 << 4 | 1 << 11));
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_NO, DAPPLEDV_ANSWER_NO);
}

// Every length up to the answer; no byte beyond the read ones may be used.
void parse_pci_config__cut_short_is_unknown(void**) {
  uint8_t config[256];
  make(config, 0x60, 1 << 4 | 1 << 11);
  for (size_t size = 0; size < 0x6a; ++size) {
    assert_ordering(parse_pci_config(config, size), DAPPLEDV_ANSWER_UNKNOWN, DAPPLEDV_ANSWER_UNKNOWN);
  }
  assert_ordering(parse_pci_config(config, 0x6a), DAPPLEDV_ANSWER_YES, DAPPLEDV_ANSWER_YES);
}

void parse_pci_config__capability_at_the_end(void**) {
  uint8_t config[256];
  make(config, 0xf4, 1 << 4);
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_YES, DAPPLEDV_ANSWER_NO);
  make(config, 0x60, 1 << 4);
  config[0x41] = 0xf8;
  config[0xf8] = 0x10;
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_UNKNOWN, DAPPLEDV_ANSWER_UNKNOWN);
}

void parse_pci_config__nonsense_is_unknown(void**) {
  uint8_t config[256];
  for (uint8_t pointer : {0x00, 0x04, 0x3c, 0x40}) {  // no list, one that leads into the header, and a circle
    make(config, 0x60, 1 << 4);
    config[0x41] = pointer;
    assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_UNKNOWN, DAPPLEDV_ANSWER_UNKNOWN);
  }
  make(config, 0x60, 1 << 4);
  config[0x06] = 0;  // no capabilities at all
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_UNKNOWN, DAPPLEDV_ANSWER_UNKNOWN);
  memset(config, 0xff, sizeof(config));
  assert_ordering(parse_pci_config(config, 256), DAPPLEDV_ANSWER_UNKNOWN, DAPPLEDV_ANSWER_UNKNOWN);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(parse_pci_config__each_bit_alone),
      cmocka_unit_test(parse_pci_config__cut_short_is_unknown),
      cmocka_unit_test(parse_pci_config__capability_at_the_end),
      cmocka_unit_test(parse_pci_config__nonsense_is_unknown),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
