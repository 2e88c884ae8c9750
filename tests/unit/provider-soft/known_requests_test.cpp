// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/known_requests.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::KnownRequests;
using dapple::soft::check::kThisHost;
using dapple::soft::check::name_of;

void has__up_to_the_stamp_of_its_queue_pair(void**) {
  KnownRequests known;
  assert_false(known.has(1, 1, 1));
  assert_true(known.add(1, 10, 12));
  assert_true(known.has(1, 9, 9));
  assert_true(known.has(1, 10, 10));
  assert_false(known.has(1, 11, 11));
  assert_false(known.has(2, 1, 1));
}

void add__lower_stamp__changes_nothing(void**) {
  KnownRequests known;
  known.add(1, 10, 12);
  assert_false(known.add(1, 9, 13));
  assert_true(known.has(1, 10, 10));
}

void add_all_until__any_queue_pair__is_known(void**) {
  KnownRequests known;
  known.add(1, 10, 12);
  known.add(2, 30, 33);
  assert_true(known.add_all_until(20));
  assert_int_equal(known.count, 1);
  assert_true(known.has(3, 20, 20));
  assert_false(known.has(3, 21, 21));
  assert_true(known.has(2, 30, 30));
  assert_false(known.add_all_until(19));
}

// On another host a request begins to count when it comes, which may be after a floor that its post was before.
void add__posted_before_the_floor_and_complete_after_it__is_kept(void**) {
  KnownRequests known;
  assert_true(known.add_all_until(20));
  assert_true(known.add(1, 10, 25));
  assert_true(known.has(1, 10, 1000));
  assert_true(known.add_all_until(24));
  assert_true(known.has(1, 10, 1000));
  assert_true(known.add_all_until(25));
  assert_int_equal(known.count, 0);
  assert_false(known.add(2, 10, 25));
}

void add__those_of_another_program__has_both(void**) {
  KnownRequests one, other;
  one.add(1, 10, 11);
  other.add(1, 5, 6);
  other.add(2, 20, 21);
  other.add_all_until(3);
  assert_true(one.add(other));
  assert_true(one.has(1, 10, 10));
  assert_true(one.has(2, 20, 20));
  assert_true(one.has(9, 3, 3));
  assert_int_equal(one.entries[1].learned, 21);
  assert_false(one.add(other));
}

// A queue pair that is forgotten may hide a race, and never makes one: not on another host either, where the floor must
// not be before the time at which the request was complete.
void add__too_many__knows_all_until_one_was_learned(void**) {
  for (const uint64_t host : {kThisHost, uint64_t{7}}) {
    KnownRequests known;
    for (uint32_t i = 0; i < KnownRequests::kMax; i++) known.add(name_of(host, i + 1), 10 + i, 1000 - i);
    assert_int_equal(known.count, KnownRequests::kMax);
    assert_int_equal(known.floor, 0);
    constexpr uint64_t kFirst = 1000 - (KnownRequests::kMax - 1);
    assert_true(known.add(100, 2000, 2010));
    assert_int_equal(known.count, KnownRequests::kMax);
    assert_int_equal(known.floor, kFirst);
    assert_true(known.has(100, 2000, 2000));
    for (uint32_t i = 0; i + 1 < KnownRequests::kMax; i++) assert_true(known.has(name_of(host, i + 1), 10 + i, 5000));
    // One that was learned before the others raises the floor alone.
    assert_true(known.add(300, 5, kFirst + 1));
    assert_int_equal(known.floor, kFirst + 1);
    assert_false(known.has(300, 5, kFirst + 2));
  }
}

// Stamps of two hosts are times of two clocks.
void has__request_of_another_host__by_its_own_time_here(void**) {
  const auto far = name_of(7, 1);
  KnownRequests known;
  known.add(far, 50, 600);
  known.add(1, 60, 100);
  assert_true(known.has(far, 50, 1000));
  assert_false(known.has(far, 51, 1000));
  assert_false(known.has(1, 50 + 20, 50 + 20));
  assert_true(known.add_all_until(500));
  assert_int_equal(known.count, 1);
  assert_true(known.has(far, 51, 500));
  assert_false(known.has(far, 51, 501));
  assert_true(known.has(far, 50, 501));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(has__up_to_the_stamp_of_its_queue_pair),
      cmocka_unit_test(add__lower_stamp__changes_nothing),
      cmocka_unit_test(add_all_until__any_queue_pair__is_known),
      cmocka_unit_test(add__posted_before_the_floor_and_complete_after_it__is_kept),
      cmocka_unit_test(add__those_of_another_program__has_both),
      cmocka_unit_test(add__too_many__knows_all_until_one_was_learned),
      cmocka_unit_test(has__request_of_another_host__by_its_own_time_here),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
