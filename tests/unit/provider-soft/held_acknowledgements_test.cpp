// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/held_acknowledgements.hpp"

#include <vector>

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using dapple::roce::Owes;

namespace {

constexpr int kHabit = 8;
constexpr int kRoom = 64;

struct Pair {
  QpHeld held;
  Owes owed = Owes::kNothing;
};
using Held = HeldAcknowledgements<Pair>;

struct Rig {
  Handover handover;
  Held held{handover};
  Pair pair;
  std::vector<Pair*> sent;

  Rig() { handover.step_aside(); }
  void send(Owes least) {
    held.send(least, [this](Pair& each, Owes urgency) {
      const Held::Verdict verdict = Held::judge(each.held, each.owed, urgency);
      if (verdict == Held::Verdict::kGoes) sent.push_back(&each);
      return verdict != Held::Verdict::kWaits;
    });
  }
  // A pass of a polling thread without packets.
  void pass(Worker worker = Worker::kPoller) {
    if (const Owes due = held.begin_pass(worker); due != Owes::kMore) send(due);
  }
  // A message arrives in a pass.
  bool message(Owes owes, bool may_hold = true) {
    pair.owed = owes;
    return !held.must_send_now(pair, owes, may_hold);
  }
  // The program answers each of some messages.
  void learn_habit() {
    for (int i = 0; i <= kHabit; ++i) {
      pass();
      message(Owes::kAcknowledgement);
      held.note_answer(pair.held);
    }
    // The last answer has taken the acknowledgement along.
    pair.owed = Owes::kNothing;
    send(Owes::kLaterAcknowledgement);
    sent.clear();
  }
};

void must_send_now__no_habit__sends(void**) {
  Rig rig;
  rig.pass();
  assert_false(rig.message(Owes::kAcknowledgement));
  assert_false(rig.held.any());
}

void must_send_now__more_or_nothing__is_not_held(void**) {
  Rig rig;
  rig.pass();
  assert_true(rig.held.must_send_now(rig.pair, Owes::kMore, true));
  assert_false(rig.held.must_send_now(rig.pair, Owes::kNothing, true));
  assert_false(rig.held.any());
}

void must_send_now__habit_of_answers__holds_until_the_second_poll(void**) {
  Rig rig;
  rig.learn_habit();
  rig.pass();
  assert_true(rig.message(Owes::kAcknowledgement));
  assert_true(rig.held.any());
  rig.pass();
  assert_int_equal(rig.sent.size(), 0);
  rig.pass();
  assert_int_equal(rig.sent.size(), 1);
  assert_false(rig.held.any());
  // The program must show its habit again.
  rig.pass();
  assert_false(rig.message(Owes::kAcknowledgement));
}

void must_send_now__unasked__waits_for_more_messages(void**) {
  Rig rig;
  rig.pass();
  assert_true(rig.message(Owes::kLaterAcknowledgement));
  for (int i = 0; i < 16; ++i) rig.pass();
  assert_int_equal(rig.sent.size(), 0);
  rig.pass();
  assert_int_equal(rig.sent.size(), 1);
}

// The background thread would not look in time.
void must_send_now__background_thread_is_there__sends(void**) {
  Rig rig;
  rig.handover.take_over();
  rig.pass();
  assert_false(rig.message(Owes::kLaterAcknowledgement));
}

void must_send_now__not_a_poller_or_an_end__sends(void**) {
  Rig rig;
  rig.pass(Worker::kOther);
  assert_false(rig.message(Owes::kLaterAcknowledgement));
  rig.pass();
  assert_false(rig.message(Owes::kLaterAcknowledgement, false));
}

void must_send_now__no_room__sends(void**) {
  Rig rig;
  rig.pass();
  std::vector<Pair> pairs(kRoom + 1);
  for (int i = 0; i <= kRoom; ++i) {
    pairs[static_cast<size_t>(i)].owed = Owes::kLaterAcknowledgement;
    assert_int_equal(rig.held.must_send_now(pairs[static_cast<size_t>(i)], Owes::kLaterAcknowledgement, true),
                     i == kRoom);
  }
  rig.send(Owes::kLaterAcknowledgement);
  assert_int_equal(rig.sent.size(), kRoom);
}

// The background thread has taken over between the hold and the end of the poll.
void must_not_wait__taken_over__is_true(void**) {
  Rig rig;
  rig.pass();
  assert_true(rig.message(Owes::kLaterAcknowledgement));
  assert_false(rig.held.must_not_wait());
  rig.handover.take_over();
  assert_true(rig.held.must_not_wait());
}

void begin_pass__another_thread__sends_all(void**) {
  Rig rig;
  rig.pass();
  assert_true(rig.message(Owes::kLaterAcknowledgement));
  rig.pass(Worker::kOther);
  assert_int_equal(rig.sent.size(), 1);
}

void send__answered_meanwhile__sends_nothing(void**) {
  Rig rig;
  rig.pass();
  assert_true(rig.message(Owes::kLaterAcknowledgement));
  rig.pair.owed = Owes::kNothing;
  rig.send(Owes::kLaterAcknowledgement);
  assert_int_equal(rig.sent.size(), 0);
  assert_false(rig.held.any());
  assert_false(rig.pair.held.listed);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(must_send_now__no_habit__sends),
      cmocka_unit_test(must_send_now__more_or_nothing__is_not_held),
      cmocka_unit_test(must_send_now__habit_of_answers__holds_until_the_second_poll),
      cmocka_unit_test(must_send_now__unasked__waits_for_more_messages),
      cmocka_unit_test(must_send_now__background_thread_is_there__sends),
      cmocka_unit_test(must_send_now__not_a_poller_or_an_end__sends),
      cmocka_unit_test(must_send_now__no_room__sends),
      cmocka_unit_test(must_not_wait__taken_over__is_true),
      cmocka_unit_test(begin_pass__another_thread__sends_all),
      cmocka_unit_test(send__answered_meanwhile__sends_nothing),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
