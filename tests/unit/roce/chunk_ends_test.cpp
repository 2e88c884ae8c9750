// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/reliable/chunk_ends.hpp"

#include <initializer_list>

// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;

namespace {

void drop__before_and_from_a_psn__leaves_the_ends_between(void**) {
  ChunkEnds ends;
  assert_true(ends.make_room(4));
  for (uint32_t psn : {7, 15, 23, 31}) ends.add(psn);
  assert_int_equal(ends.count(), 4);
  ends.drop_before(15);
  assert_int_equal(ends.count(), 3);
  assert_int_equal(ends.oldest(), 15);
  ends.drop_from(24);
  assert_int_equal(ends.count(), 2);
  ends.drop_from(15);
  assert_true(ends.empty());
}

void drop_before__psns_that_begin_anew__compares_them_as_before(void**) {
  ChunkEnds ends;
  assert_true(ends.make_room(2));
  ends.add(kPsnMask);
  ends.add(3);
  ends.drop_before(0);
  assert_int_equal(ends.count(), 1);
  assert_int_equal(ends.oldest(), 3);
}

void make_room__ends_that_wait_in_the_middle_of_the_ring__stay(void**) {
  ChunkEnds ends;
  assert_true(ends.make_room(2));
  ends.add(1);
  ends.add(2);
  ends.drop_before(2);
  ends.add(3);
  assert_true(ends.make_room(5));
  assert_true(ends.make_room(1));
  for (uint32_t psn : {4, 5, 6}) ends.add(psn);
  for (uint32_t psn = 2; psn <= 6; psn++) {
    assert_int_equal(ends.oldest(), psn);
    ends.drop_before(psn + 1);
  }
  assert_true(ends.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(drop__before_and_from_a_psn__leaves_the_ends_between),
      cmocka_unit_test(drop_before__psns_that_begin_anew__compares_them_as_before),
      cmocka_unit_test(make_room__ends_that_wait_in_the_middle_of_the_ring__stay),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
