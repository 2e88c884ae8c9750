// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/known_requests.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::KnownRequests;
using dapple::soft::check::name_of;

void has__up_to_the_stamp_of_its_queue_pair(void**) {
  KnownRequests known;
  assert_false(known.has(1, 1));
  assert_true(known.add(1, 10));
  assert_true(known.has(1, 9));
  assert_true(known.has(1, 10));
  assert_false(known.has(1, 11));
  assert_false(known.has(2, 1));
}

void add__lower_stamp__changes_nothing(void**) {
  KnownRequests known;
  known.add(1, 10);
  assert_false(known.add(1, 9));
  assert_true(known.has(1, 10));
}

void add_all_until__any_queue_pair__is_known(void**) {
  KnownRequests known;
  known.add(1, 10);
  known.add(2, 30);
  assert_true(known.add_all_until(20));
  assert_int_equal(known.count, 1);
  assert_true(known.has(3, 20));
  assert_false(known.has(3, 21));
  assert_true(known.has(2, 30));
  assert_false(known.add_all_until(19));
}

void add__those_of_another_program__has_both(void**) {
  KnownRequests one, other;
  one.add(1, 10);
  other.add(1, 5);
  other.add(2, 20);
  other.add_all_until(3);
  assert_true(one.add(other));
  assert_true(one.has(1, 10));
  assert_true(one.has(2, 20));
  assert_true(one.has(9, 3));
  assert_false(one.add(other));
}

// A queue pair that is forgotten may hide a race, and never makes one.
void add__too_many__knows_more(void**) {
  KnownRequests known;
  for (uint32_t i = 0; i < KnownRequests::kMost; i++) known.add(i + 1, 1000 - i);
  assert_int_equal(known.count, KnownRequests::kMost);
  known.add(100, 2000);
  assert_true(known.has(100, 2000));
  for (uint32_t i = 0; i < KnownRequests::kMost; i++) assert_true(known.has(i + 1, 1000 - i));
  assert_false(known.has(101, 1000));
  assert_true(known.has(101, 1000 - (KnownRequests::kMost - 1)));
  // One that is not above the lowest raises the floor alone.
  assert_true(known.add(300, 970));
  assert_true(known.has(300, 970));
  assert_false(known.has(300, 971));
}

// Stamps of two hosts are times of two clocks.
void has__request_of_another_host__by_its_own_time_here(void**) {
  const auto far = name_of(7, 1);
  KnownRequests known;
  known.add(far, 50);
  known.add(1, 60);
  assert_true(known.has(far, 50, 1000));
  assert_false(known.has(far, 51, 1000));
  assert_false(known.has(1, 50 + 20));
  assert_true(known.add_all_until(500));
  assert_int_equal(known.count, 1);
  assert_true(known.has(far, 51, 500));
  assert_false(known.has(far, 51, 501));
  assert_true(known.has(far, 50));
  assert_true(known.add_all(2000));
  assert_int_equal(known.count, 0);
  assert_true(known.has(far, 51, 2000));
}

void add__too_many_of_other_hosts__knows_all(void**) {
  KnownRequests known;
  known.add(5, 1000);
  for (uint32_t i = 1; i < KnownRequests::kMost; i++) known.add(name_of(7, i), i);
  // This host's goes first.
  known.add(name_of(8, 1), 1);
  assert_int_equal(known.floor, 1000);
  for (uint32_t i = 1; i < KnownRequests::kMost; i++) assert_true(known.has(name_of(7, i), i));
  const uint64_t before = dapple::now_ns();
  assert_true(known.add(name_of(9, 1), 1));
  assert_true(known.floor >= before);
  assert_true(known.count == 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(has__up_to_the_stamp_of_its_queue_pair),
      cmocka_unit_test(add__lower_stamp__changes_nothing),
      cmocka_unit_test(add_all_until__any_queue_pair__is_known),
      cmocka_unit_test(add__those_of_another_program__has_both),
      cmocka_unit_test(add__too_many__knows_more),
      cmocka_unit_test(has__request_of_another_host__by_its_own_time_here),
      cmocka_unit_test(add__too_many_of_other_hosts__knows_all),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
