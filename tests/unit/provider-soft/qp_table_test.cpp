// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/qp_table.hpp"

#include <memory>

#include "provider/soft/check/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr uint32_t kFirst = 5 << 16;
BiasedMutex receiving{LockRank::kReceiving};

// A packet for a number that was just given finds no queue pair without an engine.
void finds_open_queue_pairs_only(void**) {
  const auto table = std::make_unique<QpTable>(kFirst, 7);
  Qp qp;
  assert_int_equal(table->add(qp), kFirst + 7);
  assert_null(table->find(qp.qpn));
  QpTable::open(qp);
  assert_ptr_equal(table->find(qp.qpn), &qp);
  table->remove(qp, std::unique_lock(receiving));
  assert_null(table->find(kFirst + 7));
}

void numbers_go_around(void**) {
  const auto table = std::make_unique<QpTable>(kFirst, kQpsOfASlot - 1);
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
  const auto table = std::make_unique<QpTable>(kFirst, 0);
  assert_null(table->find(kFirst - 1));
  assert_null(table->find(kFirst + kQpsOfASlot));
  assert_null(table->find(0xFFFFFF));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(finds_open_queue_pairs_only),
      cmocka_unit_test(numbers_go_around),
      cmocka_unit_test(slot_0_begins_with_number_2),
      cmocka_unit_test(foreign_numbers_are_nobody),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
