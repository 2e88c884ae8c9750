// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/engine_turn.hpp"

#include "tests/unit/provider-soft/progress_rig.hpp"

using namespace dapple::soft;
using namespace dapple::tests;
using dapple::roce::kNever;
using dapple::roce::QpState;
using dapple::roce::Time;
using End = EngineTurn::End;

namespace {

constexpr Time kDeadline = 1234;

ProgressRig* rig = nullptr;
Qp* qp = nullptr;

int make_rig(void**) {
  rig = new ProgressRig;
  qp = &rig->make_qp();
  ProgressRig::engine_of(*qp).set_state(QpState::kRts);
  ProgressRig::engine_of(*qp).packets = 2;
  ProgressRig::engine_of(*qp).next = kDeadline;
  return 0;
}

int drop_rig(void**) {
  for (auto& each : rig->qps) rig->engines.timers.remove(*each);
  delete rig;
  return 0;
}

void take_turn(End end) {
  const EngineTurn turn(rig->engines, *qp, end);
}

void turn__has_the_lock_to_its_end(void**) {
  {
    const EngineTurn turn(rig->engines, *qp, End::kSend);
#ifndef NDEBUG
    assert_true(qp->mutex.is_held_here());
#endif
  }
  assert_false(ProgressRig::is_locked(*qp));
}

void end__send__sends_and_takes_over_state_and_deadline(void**) {
  take_turn(End::kSend);
  assert_int_equal(rig->wire.sent, 2);
  assert_true(qp->state.load() == QpState::kRts);
  assert_int_equal(rig->engines.timers.earliest(), kDeadline);
  assert_true(rig->was_woken());
  assert_false(rig->engines.ready.any());
  assert_false(qp->scheduling.stuck);
  // The same deadline again is nothing new.
  take_turn(End::kSend);
  assert_false(rig->was_woken());
}

void end__send_with_more_to_send__waits_for_a_turn(void**) {
  ProgressRig::engine_of(*qp).has_more = true;
  ProgressRig::engine_of(*qp).next = kNever;
  take_turn(End::kSend);
  assert_true(rig->engines.ready.any());
  assert_true(rig->was_woken());
  assert_false(qp->scheduling.stuck);
  // It could send nothing, and waits already.
  ProgressRig::engine_of(*qp).packets = 0;
  take_turn(End::kSend);
  assert_true(qp->scheduling.stuck);
  assert_false(rig->was_woken());
  const Qp* last = nullptr;
  assert_ptr_equal(rig->engines.ready.take(last), qp);
  assert_null(rig->engines.ready.take(last));
  QpTable::unpin(*qp);
}

// A thread that steps aside is not woken: a thread that polls looks itself.
void end__send_while_the_background_thread_is_aside__wakes_nobody(void**) {
  rig->handover.step_aside();
  ProgressRig::engine_of(*qp).has_more = true;
  ProgressRig::engine_of(*qp).next = kNever;
  take_turn(End::kSend);
  assert_true(rig->engines.ready.any());
  assert_false(rig->was_woken());
  rig->handover.take_over();
  const Qp* last = nullptr;
  assert_ptr_equal(rig->engines.ready.take(last), qp);
  QpTable::unpin(*qp);
}

void end__post__notes_an_answer(void**) {
  take_turn(End::kSend);
  assert_false(qp->held.answered);
  take_turn(End::kPost);
  assert_true(qp->held.answered);
  assert_int_equal(rig->wire.sent, 4);
}

void end__state__sends_from_rts_on_only(void**) {
  ProgressRig::engine_of(*qp).set_state(QpState::kRtr);
  take_turn(End::kState);
  assert_int_equal(rig->wire.sent, 0);
  assert_true(qp->state.load() == QpState::kRtr);
  ProgressRig::engine_of(*qp).set_state(QpState::kRts);
  take_turn(End::kState);
  assert_int_equal(rig->wire.sent, 2);
}

void end__keep__takes_over_without_sending(void**) {
  take_turn(End::kKeep);
  assert_int_equal(rig->wire.sent, 0);
  assert_int_equal(rig->engines.timers.earliest(), kDeadline);
  assert_true(qp->state.load() == QpState::kRts);
}

void end__tell_or_wake__leaves_the_engine_alone(void**) {
  take_turn(End::kTell);
  take_turn(End::kWake);
  assert_int_equal(ProgressRig::engine_of(*qp).transmitted, 0);
  assert_int_equal(rig->engines.timers.earliest(), kNever);
  assert_true(qp->state.load() == QpState::kReset);
}

void finish_engine__sends_once(void**) {
  {
    EngineTurn turn(rig->engines, *qp, End::kSend);
    turn.finish_engine();
    assert_int_equal(rig->wire.sent, 2);
  }
  assert_int_equal(rig->wire.sent, 2);
}

void end__error__flushes_receives_once(void**) {
  ProgressRig::engine_of(*qp).set_state(QpState::kError);
  take_turn(End::kSend);
  take_turn(End::kSend);
  assert_int_equal(ProgressRig::engine_of(*qp).flushed, 1);
}

void end__counters__are_added_once(void**) {
  ProgressRig::engine_of(*qp).noted.timeouts = 3;
  take_turn(End::kSend);
  take_turn(End::kSend);
  assert_int_equal(rig->counters.engine.timeouts.value(), 3);
}

// It ends, so nobody may find it in the timers or in the list afterwards.
void end__queue_pair_that_ends__is_neither_scheduled_nor_ready(void**) {
  qp->scheduling.ends = true;
  ProgressRig::engine_of(*qp).has_more = true;
  take_turn(End::kSend);
  assert_int_equal(rig->engines.timers.earliest(), kNever);
  assert_false(rig->engines.ready.any());
}

}  // namespace

int main() {
#define IN_A_RIG(test) cmocka_unit_test_setup_teardown(test, make_rig, drop_rig)
  const CMUnitTest tests[] = {
      IN_A_RIG(turn__has_the_lock_to_its_end),
      IN_A_RIG(end__send__sends_and_takes_over_state_and_deadline),
      IN_A_RIG(end__send_with_more_to_send__waits_for_a_turn),
      IN_A_RIG(end__send_while_the_background_thread_is_aside__wakes_nobody),
      IN_A_RIG(end__post__notes_an_answer),
      IN_A_RIG(end__state__sends_from_rts_on_only),
      IN_A_RIG(end__keep__takes_over_without_sending),
      IN_A_RIG(end__tell_or_wake__leaves_the_engine_alone),
      IN_A_RIG(finish_engine__sends_once),
      IN_A_RIG(end__error__flushes_receives_once),
      IN_A_RIG(end__counters__are_added_once),
      IN_A_RIG(end__queue_pair_that_ends__is_neither_scheduled_nor_ready),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
