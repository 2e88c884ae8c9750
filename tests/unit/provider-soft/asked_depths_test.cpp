// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/asked_depths.hpp"

#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::check::AskedDepths;

namespace {

const char queue = 0, other = 0;

void exceeded__more_than_asked__is_told_once(void**) {
  AskedDepths asked;
  asked.add(&queue, 16);
  assert_false(asked.exceeded(&queue, 16).has_value());
  assert_int_equal(asked.exceeded(&queue, 17).value_or(0), 16);
  assert_false(asked.exceeded(&queue, 18).has_value());
  assert_false(asked.exceeded(&other, 100).has_value());
}

void add__another_size__counts_from_then_on(void**) {
  AskedDepths asked;
  asked.add(&queue, 16);
  asked.add(&queue, 20);
  assert_int_equal(asked.depth(&queue, 31), 20);
  assert_false(asked.exceeded(&queue, 20).has_value());
  assert_int_equal(asked.exceeded(&queue, 21).value_or(0), 20);
}

void remove__queue_that_is_gone__is_not_known(void**) {
  AskedDepths asked;
  asked.add(&queue, 16);
  asked.remove(&queue);
  assert_false(asked.exceeded(&queue, 17).has_value());
  assert_int_equal(asked.depth(&queue, 31), 31);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(exceeded__more_than_asked__is_told_once),
      cmocka_unit_test(add__another_size__counts_from_then_on),
      cmocka_unit_test(remove__queue_that_is_gone__is_not_known),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
