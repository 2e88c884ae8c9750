// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/cq_loads.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::CqLoads;

const char cq = 0, sends = 0, receives = 0, shared = 0;

void excess__queues_that_fit__is_none(void**) {
  CqLoads loads;
  loads.add(&cq, &sends, 10);
  loads.add(&cq, &receives, 20);
  assert_false(loads.excess(&cq, 30).has_value());
}

void excess__more_than_the_size__is_told_once(void**) {
  CqLoads loads;
  loads.add(&cq, &sends, 10);
  loads.add(&cq, &receives, 20);
  assert_int_equal(loads.excess(&cq, 29).value_or(0), 30);
  assert_false(loads.excess(&cq, 29).has_value());
}

void add__shared_queue_again__counts_once(void**) {
  CqLoads loads;
  loads.add(&cq, &shared, 100);
  loads.add(&cq, &shared, 100);
  assert_false(loads.excess(&cq, 100).has_value());
  loads.remove(&cq, &shared);
  loads.add(&cq, &sends, 1);
  assert_int_equal(loads.excess(&cq, 100).value_or(0), 101);
}

void remove__last_user__counts_no_more(void**) {
  CqLoads loads;
  loads.add(&cq, &sends, 10);
  loads.add(&cq, &receives, 20);
  loads.remove(&cq, &receives);
  assert_false(loads.excess(&cq, 10).has_value());
  assert_int_equal(loads.excess(&cq, 9).value_or(0), 10);
}

void forget__same_address_again__begins_anew(void**) {
  CqLoads loads;
  loads.add(&cq, &sends, 10);
  assert_true(loads.excess(&cq, 1).has_value());
  loads.forget(&cq);
  loads.add(&cq, &sends, 10);
  assert_true(loads.excess(&cq, 1).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(excess__queues_that_fit__is_none),
      cmocka_unit_test(excess__more_than_the_size__is_told_once),
      cmocka_unit_test(add__shared_queue_again__counts_once),
      cmocka_unit_test(remove__last_user__counts_no_more),
      cmocka_unit_test(forget__same_address_again__begins_anew),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
