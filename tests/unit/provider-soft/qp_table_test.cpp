// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/qp_table.hpp"

#include <memory>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint32_t kSlot = 5;
constexpr uint32_t kFirst = kSlot << 16;
BiasedMutex receiving{LockRank::kReceiving};

// A packet for a number that was just given finds no queue pair without an engine.
void finds_open_queue_pairs_only(void**) {
  const auto table = std::make_unique<QpTable>(kSlot, 7);
  Qp qp;
  assert_int_equal(table->add(qp), kFirst + 7);
  assert_null(table->find(qp.qpn));
  QpTable::open(qp);
  assert_ptr_equal(table->find(qp.qpn), &qp);
  table->remove(qp, std::unique_lock(receiving));
  assert_null(table->find(kFirst + 7));
}

void numbers_go_around(void**) {
  const auto table = std::make_unique<QpTable>(kSlot, kQpsOfASlot - 1);
  Qp last, first;
  assert_int_equal(table->add(last), kFirst + kQpsOfASlot - 1);
  assert_int_equal(table->add(first), kFirst);
  table->remove(last, std::unique_lock(receiving));
  Qp next;
  assert_int_equal(table->add(next), kFirst + 1);
}

// QP 0 and QP 1 belong to the port.
void slot_0_begins_with_number_2(void**) {
  const auto table = std::make_unique<QpTable>(0, 0);
  Qp qp;
  assert_int_equal(table->add(qp), 2);
}

void foreign_numbers_are_nobody(void**) {
  const auto table = std::make_unique<QpTable>(kSlot, 0);
  assert_null(table->find(kFirst - 1));
  assert_null(table->find(kFirst + kQpsOfASlot));
  assert_null(table->find(0xFFFFFF));
}

void small_slot__has_its_numbers_only(void**) {
  const uint32_t first = first_qpn(kLargeSlots + 1), end = first + qpns_of(kLargeSlots + 1);
  const auto table = std::make_unique<QpTable>(kLargeSlots + 1, UINT32_MAX);
  Qp last, next;
  assert_int_equal(table->add(last), end - 1);
  assert_int_equal(table->add(next), first);
  QpTable::open(last);
  assert_ptr_equal(table->find(end - 1), &last);
  assert_null(table->find(end));
  assert_true(table->has_number(end - 1));
  assert_false(table->has_number(end));
  assert_int_equal(table->most(), qpns_of(kLargeSlots + 1) - 1);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(finds_open_queue_pairs_only),      cmocka_unit_test(numbers_go_around),
      cmocka_unit_test(slot_0_begins_with_number_2),      cmocka_unit_test(foreign_numbers_are_nobody),
      cmocka_unit_test(small_slot__has_its_numbers_only),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
