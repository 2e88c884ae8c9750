// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/ready.hpp"

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

bool add(Ready& ready, Qp& qp) {
  const BiasedLock lock(qp.mutex);
  return ready.add(qp);
}

// Its turn begins and ends.
void have_turn(Qp& qp) {
  {
    const BiasedLock lock(qp.mutex);
    Ready::began(qp);
  }
  QpTable::unpin(qp);
}

void take__longest_waiting_first(void**) {
  Ready ready;
  Qp qps[3];
  assert_false(ready.any());
  for (Qp& qp : qps) assert_true(add(ready, qp));
  assert_true(ready.any());
  const Qp* last = nullptr;
  for (Qp& qp : qps) {
    assert_ptr_equal(ready.take(last), &qp);
    assert_ptr_equal(last, &qps[2]);
    assert_int_equal(qp.scheduling.pins.load(), 1);
    have_turn(qp);
  }
  assert_null(ready.take(last));
  assert_false(ready.any());
}

// A queue pair that has more to send after its turn does not get another one before the others.
void take__added_again__is_behind_the_last(void**) {
  Ready ready;
  Qp one, two;
  add(ready, one);
  add(ready, two);
  const Qp* last = nullptr;
  assert_ptr_equal(ready.take(last), &one);
  have_turn(one);
  add(ready, one);
  assert_ptr_equal(ready.take(last), &two);
  assert_ptr_equal(last, &two);
  have_turn(two);
  assert_ptr_equal(ready.take(last), &one);
  have_turn(one);
}

void add__waits_already__counts_once(void**) {
  Ready ready;
  Qp qp;
  assert_true(add(ready, qp));
  assert_false(add(ready, qp));
  assert_int_equal(qp.scheduling.pins.load(), 1);
  const Qp* last = nullptr;
  assert_ptr_equal(ready.take(last), &qp);
  // It has been taken, and its turn has not begun: it need not wait again.
  assert_false(add(ready, qp));
  have_turn(qp);
  assert_null(ready.take(last));
}

void forget__first_middle_and_last__leaves_the_others(void**) {
  for (int forgotten = 0; forgotten < 3; ++forgotten) {
    Ready ready;
    Qp qps[3];
    for (Qp& qp : qps) add(ready, qp);
    qps[forgotten].scheduling.ends = true;
    ready.forget(qps[forgotten]);
    assert_int_equal(qps[forgotten].scheduling.pins.load(), 0);
    const Qp* last = nullptr;
    for (int i = 0; i < 3; ++i) {
      if (i == forgotten) continue;
      assert_ptr_equal(ready.take(last), &qps[i]);
      have_turn(qps[i]);
    }
    assert_null(ready.take(last));
    // The list's end is right, too.
    Qp another;
    add(ready, another);
    assert_ptr_equal(ready.take(last), &another);
    have_turn(another);
  }
}

void forget__does_not_wait__does_nothing(void**) {
  Ready ready;
  Qp qp;
  qp.scheduling.ends = true;
  ready.forget(qp);
  assert_int_equal(qp.scheduling.pins.load(), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(take__longest_waiting_first),
      cmocka_unit_test(take__added_again__is_behind_the_last),
      cmocka_unit_test(add__waits_already__counts_once),
      cmocka_unit_test(forget__first_middle_and_last__leaves_the_others),
      cmocka_unit_test(forget__does_not_wait__does_nothing),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
