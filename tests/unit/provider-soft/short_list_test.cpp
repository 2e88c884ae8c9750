// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/short_list.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using List = dapple::soft::check::ShortList<int, 2>;

bool has(const List& list, std::initializer_list<int> expected) {
  return list.empty() == (expected.size() == 0) &&
         std::equal(list.begin(), list.end(), expected.begin(), expected.end());
}

List up_to(int count) {
  List list;
  for (int i = 0; i < count; i++) list.push_back(i);
  return list;
}

void short_list__few_or_many__are_in_order(void**) {
  assert_true(has(up_to(0), {}));
  assert_true(has(up_to(2), {0, 1}));
  assert_true(has(up_to(3), {0, 1, 2}));
  assert_true(has(List{4, 5, 6, 7}, {4, 5, 6, 7}));
}

void short_list__copy_and_move__have_the_same_elements(void**) {
  List few = up_to(1);
  List many = up_to(5);
  const List copy = many;
  few = std::move(many);
  assert_true(has(few, {0, 1, 2, 3, 4}));
  assert_true(has(copy, {0, 1, 2, 3, 4}));
  assert_int_equal(copy[4], 4);
}

void short_list__erase_if__keeps_the_others(void**) {
  List list = up_to(6);
  list.erase_if([](int element) { return element % 2 == 0; });
  assert_true(has(list, {1, 3, 5}));
  list.erase_if([](int element) { return element > 3; });
  assert_true(has(list, {1, 3}));
  list.push_back(7);
  assert_true(has(list, {1, 3, 7}));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(short_list__few_or_many__are_in_order),
      cmocka_unit_test(short_list__copy_and_move__have_the_same_elements),
      cmocka_unit_test(short_list__erase_if__keeps_the_others),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
