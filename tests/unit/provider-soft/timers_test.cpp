// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/timers.hpp"

#include <stdlib.h>

#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/scheduling/qp_table.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using dapple::roce::kNever;
using dapple::roce::Time;

namespace {

constexpr int kQps = 200;

struct Rig {
  Timers timers;
  Qp qps[kQps];
};

int make_rig(void** state) {
  Rig* rig = new Rig;
  for (int i = 0; i < kQps; ++i) rig->timers.make_room();
  *state = rig;
  return 0;
}

int drop_rig(void** state) {
  delete static_cast<Rig*>(*state);
  return 0;
}

bool schedule(Rig& rig, Qp& qp, Time deadline) {
  const BiasedLock lock(qp.mutex);
  return rig.timers.schedule(qp, deadline);
}

// Takes out all timers that are due and checks their order. Returns their number.
int pop_all(Rig& rig, Time now) {
  Time last = 0;
  int count = 0;
  for (;;) {
    const Time earliest = rig.timers.earliest();
    Qp* qp = rig.timers.pop_due(now);
    if (qp == nullptr) return count;
    if (earliest < last || qp->scheduling.pins.load() != 1 || qp->scheduling.scheduled.load() != kNever) return -1;
    QpTable::unpin(*qp);
    last = earliest;
    ++count;
  }
}

void pop_due__earliest_first_and_none_before_its_time(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  assert_int_equal(rig.timers.earliest(), kNever);
  assert_null(rig.timers.pop_due(kNever - 1));
  srandom(1);
  Time least = kNever;
  for (Qp& qp : rig.qps) {
    const Time deadline = 1000 + static_cast<Time>(random() % 1000);
    assert_int_equal(schedule(rig, qp, deadline), deadline < least);
    if (deadline < least) least = deadline;
  }
  assert_int_equal(rig.timers.earliest(), least);
  assert_int_equal(pop_all(rig, 999), 0);
  const int half = pop_all(rig, 1500);
  assert_in_range(half, 1, kQps - 1);
  assert_int_equal(pop_all(rig, 2000), kQps - half);
  assert_int_equal(rig.timers.earliest(), kNever);
}

void schedule__earlier_moves_and_later_waits_for_the_old_time(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  for (int i = 0; i < kQps; ++i) schedule(rig, rig.qps[i], 1000 + static_cast<Time>(i));
  assert_true(schedule(rig, rig.qps[150], 500));
  assert_false(schedule(rig, rig.qps[0], 5000));
  assert_false(schedule(rig, rig.qps[1], kNever));
  assert_ptr_equal(rig.timers.pop_due(600), &rig.qps[150]);
  assert_int_equal(rig.timers.earliest(), 1000);
  assert_int_equal(pop_all(rig, 5000), kQps - 1);
}

void remove__is_not_looked_at_any_more(void** state) {
  Rig& rig = *static_cast<Rig*>(*state);
  for (int i = 0; i < kQps; ++i) schedule(rig, rig.qps[i], 1000 + static_cast<Time>(i * 7 % kQps));
  for (int i = 0; i < kQps; i += 2) rig.timers.remove(rig.qps[i]);
  rig.timers.remove(rig.qps[1]);
  for (int left = kQps / 2 - 1; left > 0; --left) {
    const Qp* qp = rig.timers.pop_due(5000);
    assert_non_null(qp);
    assert_int_equal((qp - rig.qps) % 2, 1);
    assert_ptr_not_equal(qp, &rig.qps[1]);
  }
  assert_null(rig.timers.pop_due(5000));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(pop_due__earliest_first_and_none_before_its_time, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(schedule__earlier_moves_and_later_waits_for_the_old_time, make_rig, drop_rig),
      cmocka_unit_test_setup_teardown(remove__is_not_looked_at_any_more, make_rig, drop_rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
