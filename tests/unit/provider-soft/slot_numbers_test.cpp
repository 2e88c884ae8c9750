// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/protocol/slot_numbers.hpp"

#include <bitset>
#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

uint32_t slot_of_packet_to(uint32_t qpn) {
  const std::byte bth[12] = {{}, {}, {}, {}, {}, std::byte(qpn >> 16), std::byte(qpn >> 8), std::byte(qpn)};
  return slot_of_packet(bth);
}

void every_number_leads_to_one_slot(void**) {
  uint32_t numbers = 0;
  for (uint32_t slot = 0; slot <= kMaxSlots; slot++) {
    const uint32_t first = first_qpn(slot), last = first + qpns_of(slot) - 1;
    for (const uint32_t qpn : {first, first + 1, last - 1, last}) {
      assert_int_equal(slot_of(qpn), slot);
      assert_int_equal(slot_of_packet_to(qpn), slot);
    }
    if (first > 0) assert_int_not_equal(slot_of(first - 1), slot);
    if (last < 0xFFFFFF) assert_int_not_equal(slot_of(last + 1), slot);
    numbers += qpns_of(slot);
  }
  assert_int_equal(numbers, 1 << 24);
}

// Numbers, keys and names of members of a small node are those of older releases.
void large_slots__have_the_upper_bits(void**) {
  for (uint32_t slot = 0; slot < kLargeSlots; slot++) {
    assert_int_equal(first_qpn(slot), slot << 16);
    assert_int_equal(qpns_of(slot), 1 << 16);
  }
  assert_int_equal(first_qpn(kLargeSlots), kLargeSlots << 16);
  assert_int_equal(qpns_of(kLargeSlots), 1 << 13);
}

// An older sender's packets to them have different source ports.
void first_256_slots__differ_in_the_upper_bits(void**) {
  std::bitset<256> seen;
  for (uint32_t slot = 0; slot <= 255; slot++) seen.set(first_qpn(slot) >> 16);
  assert_true(seen.all());
}

void multicast__is_nobodys_slot(void**) {
  assert_int_equal(slot_of(0xFFFFFF), kMaxSlots);
  assert_int_equal(slot_of_packet_to(0xFFFFFF), kMaxSlots);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_number_leads_to_one_slot),
      cmocka_unit_test(large_slots__have_the_upper_bits),
      cmocka_unit_test(first_256_slots__differ_in_the_upper_bits),
      cmocka_unit_test(multicast__is_nobodys_slot),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
