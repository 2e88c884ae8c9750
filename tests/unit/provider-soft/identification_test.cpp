// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/packet/identification.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::IdentificationCheck;

namespace {

constexpr uint32_t kPeer = 0x0100000A, kOther = 0x0200000A;

void plausible__low_numbers__always(void**) {
  IdentificationCheck check;
  assert_true(check.plausible(kPeer, 40000, 0));
  for (uint16_t i = 0; i <= 127; i++) assert_true(check.plausible(kPeer, i, 1));
  // These packets do not show the peer's counter.
  assert_true(check.plausible(kPeer, 40001, 2));
  assert_false(check.plausible(kPeer, 128, 2));
}

void plausible__near_the_last__around_the_circle(void**) {
  IdentificationCheck check;
  assert_true(check.plausible(kPeer, 65000, 0));
  assert_true(check.plausible(kPeer, 65535, 0));
  assert_true(check.plausible(kPeer, 300, 0));
  assert_true(check.plausible(kPeer, 65530, 0));
  assert_false(check.plausible(kPeer, 20000, 0));
  assert_false(check.plausible(kPeer, 45000, 0));
}

void plausible__after_a_pause__further_ahead(void**) {
  IdentificationCheck check;
  assert_true(check.plausible(kPeer, 1000, 0));
  assert_false(check.plausible(kPeer, 11000, 5));
  assert_true(check.plausible(kPeer, 11000, 10));
  assert_false(check.plausible(kPeer, 1000, 15));
  assert_true(check.plausible(kPeer, 1000, 50));
}

// The peer's counter also serves another process of this host, which gets 20,000 packets in a second.
void plausible__beside_a_stream_to_another_process__every_packet(void**) {
  IdentificationCheck check;
  uint32_t counter = 5;
  uint64_t milliseconds = 0;
  for (const uint32_t pause : {1U, 3U, 10U, 67U, 300U, 1000U, 2500U, 20U, 5000U, 1U}) {
    milliseconds += pause;
    counter += 20 * pause;
    assert_true(check.plausible(kPeer, static_cast<uint16_t>(counter), milliseconds));
  }
}

void plausible__unknown_peer__any(void**) {
  IdentificationCheck check;
  assert_true(check.plausible(kPeer, 1000, 0));
  assert_true(check.plausible(kOther, 50000, 0));
}

// Damaged packets explain themselves by any identification.
void plausible__peer_without_a_counter__low_ones_only(void**) {
  IdentificationCheck check;
  for (int i = 0; i < IdentificationCheck::kZerosInARow; i++) check.note_zero(kPeer);
  for (uint16_t damaged = 200; damaged < 60000; damaged += 5000) assert_false(check.plausible(kPeer, damaged, 1));
  assert_true(check.plausible(kPeer, 63, 1));
  // Two damaged packets with near identifications are not in a row.
  assert_false(check.plausible(kPeer, 20000, 2));
  check.note_zero(kPeer);
  assert_false(check.plausible(kPeer, 20001, 2));
  assert_true(check.plausible(kOther, 20000, 2));
}

void plausible__counter_that_passes_zero__every_packet(void**) {
  IdentificationCheck check;
  for (uint32_t counter = 65000; counter < 65000 + 3 * 65536; counter++) {
    const auto identification = static_cast<uint16_t>(counter);
    if (identification == 0) check.note_zero(kPeer);
    assert_true(check.plausible(kPeer, identification, counter / 10));
  }
}

// The peer's address belongs to another machine now.
void plausible__peer_with_a_counter_at_last__after_one_packet(void**) {
  IdentificationCheck check;
  for (int i = 0; i < IdentificationCheck::kZerosInARow; i++) check.note_zero(kPeer);
  assert_false(check.plausible(kPeer, 65535, 1000));
  for (uint16_t i = 128; i < 400; i++) assert_true(check.plausible(kPeer, i, 1001));
  assert_false(check.plausible(kPeer, 30000, 1001));
}

}  // namespace

int main() {
  const CMUnitTest all[] = {
      cmocka_unit_test(plausible__low_numbers__always),
      cmocka_unit_test(plausible__near_the_last__around_the_circle),
      cmocka_unit_test(plausible__after_a_pause__further_ahead),
      cmocka_unit_test(plausible__beside_a_stream_to_another_process__every_packet),
      cmocka_unit_test(plausible__unknown_peer__any),
      cmocka_unit_test(plausible__peer_without_a_counter__low_ones_only),
      cmocka_unit_test(plausible__counter_that_passes_zero__every_packet),
      cmocka_unit_test(plausible__peer_with_a_counter_at_last__after_one_packet),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
