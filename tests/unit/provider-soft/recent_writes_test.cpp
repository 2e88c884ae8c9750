// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/records/recent_writes.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::check::RecentWrites;

const char one = 0, other = 0;

RecentWrites::Write by_one(uintptr_t begin, uintptr_t end) {
  return {&one, 1, begin, end};
}

bool overlaps(RecentWrites& writes, uintptr_t begin, uintptr_t end) {
  return writes.add({&other, 2, begin, end}).has_value();
}

void add__same_bytes_of_another__gives_the_earlier_one(void**) {
  RecentWrites writes;
  writes.add(by_one(100, 200));
  const auto found = writes.add({&other, 2, 199, 300});
  assert_true(found.has_value());
  assert_int_equal(found->qpn, 1);
  assert_int_equal(found->begin, 100);
}

void add__bytes_beside__finds_nothing(void**) {
  RecentWrites writes;
  writes.add(by_one(100, 200));
  assert_false(overlaps(writes, 200, 300));
  assert_false(overlaps(writes, 0, 100));
}

void add__same_queue_pair__finds_nothing(void**) {
  RecentWrites writes;
  writes.add(by_one(100, 200));
  assert_false(writes.add(by_one(100, 200)).has_value());
}

void add__packets_of_long_write__are_one(void**) {
  RecentWrites writes;
  writes.add(by_one(0, 1));
  for (uintptr_t i = 0; i < 2 * RecentWrites::kMax; i++) writes.add(by_one(1000 + 10 * i, 1010 + 10 * i));
  assert_true(overlaps(writes, 0, 1));
  assert_true(overlaps(writes, 1000, 1001));
}

void add__too_many__forgets_the_oldest(void**) {
  RecentWrites writes;
  for (uintptr_t i = 0; i <= RecentWrites::kMax; i++) writes.add(by_one(100 * i, 100 * i + 1));
  assert_false(overlaps(writes, 0, 1));
  assert_true(overlaps(writes, 100 * RecentWrites::kMax, 100 * RecentWrites::kMax + 1));
}

void clear__earlier_writes__are_forgotten(void**) {
  RecentWrites writes;
  writes.add(by_one(100, 200));
  writes.clear();
  assert_false(overlaps(writes, 100, 200));
}

void forget__queue_pair__forgets_its_writes(void**) {
  RecentWrites writes;
  writes.add(by_one(100, 200));
  writes.forget(&one);
  assert_false(overlaps(writes, 100, 200));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(add__same_bytes_of_another__gives_the_earlier_one),
      cmocka_unit_test(add__bytes_beside__finds_nothing),
      cmocka_unit_test(add__same_queue_pair__finds_nothing),
      cmocka_unit_test(add__packets_of_long_write__are_one),
      cmocka_unit_test(add__too_many__forgets_the_oldest),
      cmocka_unit_test(clear__earlier_writes__are_forgotten),
      cmocka_unit_test(forget__queue_pair__forgets_its_writes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
