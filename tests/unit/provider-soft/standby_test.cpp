// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/standby.hpp"

#include "tests/unit/provider/cmocka.hpp"

using dapple::roce::kNever;
using dapple::roce::Time;
using dapple::soft::Standby;
using Act = Standby::Act;
using Found = Standby::Found;

namespace {

constexpr Time kMicrosecond = 1000;
constexpr Time kShortestInterval = 50 * kMicrosecond;
constexpr Time kLongestAside = 2000 * kMicrosecond;
constexpr bool kPackets = true, kNoPackets = false;

// A background thread, and a program whose polls are counted.
struct Rig {
  Standby standby;
  Standby::Marks marks = {.polls = 1000};
  Time now = 1'000'000'000;
  Standby::Step step;

  void expect(Act act) const { assert_int_equal(static_cast<int>(step.act), static_cast<int>(act)); }
  void expect(Act act, Time until) const {
    expect(act);
    assert_int_equal(step.until, until);
  }
  void sleep(bool packets) { step = standby.slept(packets, marks, now); }
  // Takes over, and looks once.
  void look(Found found, bool met_poller = false, Time took = 0) {
    expect(Act::kTakeOver);
    step = standby.took_over();
    expect(Act::kLook);
    step = standby.looked({found, took, met_poller});
  }
  void look_again(Found found) {
    expect(Act::kLook);
    step = standby.looked({found, 0, false});
  }
  // The program polls, and its packets are gone when the background thread wakes.
  void meet_a_rival() {
    marks.polls++;
    sleep(kPackets);
    look(Found::kNothing);
    expect(Act::kSleep);
  }
  // A rival polls while this thread watches.
  void step_aside() {
    meet_a_rival();
    sleep(kPackets);
    expect(Act::kWatch, now + kShortestInterval);
    now = step.until;
    marks.polls++;
    step = standby.watched(marks);
    expect(Act::kMarkAside);
    step = standby.marked(marks, now);
    expect(Act::kStayAside);
  }
};

void slept__packets_of_its_own__looks_until_there_is_nothing(void**) {
  Rig rig;
  rig.sleep(kPackets);
  rig.look(Found::kWork);
  rig.look_again(Found::kWork);
  rig.look_again(Found::kNothing);
  rig.expect(Act::kSleep);
  // Nobody else has taken packets.
  rig.sleep(kPackets);
  rig.look(Found::kWork);
}

void slept__a_rival_polls__steps_aside_longer_each_time(void**) {
  Rig rig;
  rig.step_aside();
  Time aside = rig.step.until - rig.now;
  assert_int_equal(aside, kShortestInterval);
  for (int i = 0; i < 100; ++i) {
    rig.now = rig.step.until;
    rig.marks.polls += 100;
    rig.step = rig.standby.stayed_aside(rig.marks, rig.now);
    rig.expect(Act::kMarkAside);
    rig.step = rig.standby.marked(rig.marks, rig.now);
    rig.expect(Act::kStayAside);
    const Time next = rig.step.until - rig.now;
    assert_true(next > aside || next == kLongestAside);
    aside = next;
  }
  assert_int_equal(aside, kLongestAside);
  // Nobody polls any more.
  rig.now = rig.step.until;
  rig.step = rig.standby.stayed_aside(rig.marks, rig.now);
  rig.look(Found::kWork);
  rig.look_again(Found::kNothing);
  // After work of its own it begins with the shortest time again.
  rig.step_aside();
  assert_int_equal(rig.step.until - rig.now, kShortestInterval);
}

// A program that computes and polls now and then would leave packets waiting.
void stayed_aside__few_polls__takes_over(void**) {
  Rig rig;
  rig.step_aside();
  rig.now += 10 * kShortestInterval;
  rig.marks.polls += 9;
  rig.step = rig.standby.stayed_aside(rig.marks, rig.now);
  rig.expect(Act::kTakeOver);
}

void watched__nobody_polls__takes_over_and_does_not_watch_again(void**) {
  Rig rig;
  rig.meet_a_rival();
  rig.sleep(kPackets);
  rig.expect(Act::kWatch);
  rig.step = rig.standby.watched(rig.marks);
  rig.look(Found::kNothing);
  rig.expect(Act::kSleep);
  rig.sleep(kPackets);
  rig.expect(Act::kTakeOver);
}

void slept__program_waits_for_an_event__takes_over(void**) {
  Rig rig;
  rig.meet_a_rival();
  rig.marks.last_poll = rig.marks.polls;
  rig.sleep(kPackets);
  rig.expect(Act::kTakeOver);
}

// As each program must, so that it misses no completion.
void stayed_aside__program_polls_once_more_and_waits__takes_over(void**) {
  Rig rig;
  rig.step_aside();
  rig.now = rig.step.until;
  rig.marks.polls += 100;
  rig.marks.last_poll = rig.marks.polls;
  rig.marks.polls += 2;
  rig.step = rig.standby.stayed_aside(rig.marks, rig.now);
  rig.expect(Act::kTakeOver);
}

// The program has said that it waits, before this thread told the program that it steps aside.
void marked__program_waits_meanwhile__takes_over(void**) {
  Rig rig;
  rig.meet_a_rival();
  rig.marks.poller_works = true;
  rig.sleep(kPackets);
  rig.expect(Act::kMarkAside);
  rig.marks.last_poll = rig.marks.polls;
  rig.step = rig.standby.marked(rig.marks, rig.now);
  rig.expect(Act::kTakeOver);
}

// It has polled since this thread looked at the polls, so it has no reason to look at this thread again.
void marked__program_polls_and_waits_meanwhile__takes_over(void**) {
  Rig rig;
  rig.meet_a_rival();
  rig.marks.poller_works = true;
  rig.sleep(kPackets);
  rig.expect(Act::kMarkAside);
  rig.marks.last_poll = rig.marks.polls + 3;
  rig.step = rig.standby.marked(rig.marks, rig.now);
  rig.expect(Act::kTakeOver);
}

// The lock's owner works for long without a poll.
void looked__shut_out__naps_once(void**) {
  Rig rig;
  rig.sleep(kNoPackets);
  rig.look(Found::kShutOut);
  rig.expect(Act::kSleep);
  rig.sleep(kNoPackets);
  rig.expect(Act::kMarkAside);
  rig.step = rig.standby.marked(rig.marks, rig.now);
  rig.expect(Act::kStayAside, rig.now + kShortestInterval);
  rig.step = rig.standby.stayed_aside(rig.marks, rig.now);
  rig.look(Found::kNothing);
  rig.sleep(kNoPackets);
  rig.expect(Act::kTakeOver);
}

void looked__poller_met_while_fetching__becomes_a_rival(void**) {
  Rig rig;
  rig.marks.polls++;
  rig.sleep(kPackets);
  rig.look(Found::kWork, true);
  rig.expect(Act::kSleep);
  rig.sleep(kNoPackets);
  rig.expect(Act::kWatch);
}

void looked__slow_machine__waits_longer_for_polls(void**) {
  Rig rig;
  assert_int_equal(rig.standby.poll_interval(), kShortestInterval);
  for (int i = 0; i < 50; ++i) {
    rig.sleep(kNoPackets);
    rig.look(Found::kNothing, false, 20 * kMicrosecond);
  }
  assert_int_equal(rig.standby.poll_interval(), 16 * 20 * kMicrosecond);
  // One short look counts at once.
  rig.sleep(kNoPackets);
  rig.look(Found::kNothing, false, 1 * kMicrosecond);
  assert_int_equal(rig.standby.poll_interval(), kShortestInterval);
  for (int i = 0; i < 50; ++i) {
    rig.sleep(kNoPackets);
    rig.look(Found::kNothing, false, 1'000'000 * kMicrosecond);
  }
  assert_int_equal(rig.standby.poll_interval(), 1000 * kMicrosecond);
}

void sleep_end__the_first_reason_counts(void**) {
  const Rig rig;
  assert_int_equal(rig.standby.sleep_end({}, rig.now), kNever);
  assert_int_equal(rig.standby.sleep_end({.deadline = rig.now + 5}, rig.now), rig.now + 5);
  assert_int_equal(rig.standby.sleep_end({.holds = true}, rig.now), rig.now + kShortestInterval);
  assert_int_equal(rig.standby.sleep_end({.deadline = rig.now + 5, .holds = true}, rig.now), rig.now + 5);
  assert_int_equal(rig.standby.sleep_end({.ready = true}, rig.now), 0);
  assert_int_equal(rig.standby.sleep_end({.ready = true, .rings_full = true}, rig.now), rig.now + 2000 * kMicrosecond);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(slept__packets_of_its_own__looks_until_there_is_nothing),
      cmocka_unit_test(slept__a_rival_polls__steps_aside_longer_each_time),
      cmocka_unit_test(stayed_aside__few_polls__takes_over),
      cmocka_unit_test(stayed_aside__program_polls_once_more_and_waits__takes_over),
      cmocka_unit_test(watched__nobody_polls__takes_over_and_does_not_watch_again),
      cmocka_unit_test(slept__program_waits_for_an_event__takes_over),
      cmocka_unit_test(marked__program_waits_meanwhile__takes_over),
      cmocka_unit_test(marked__program_polls_and_waits_meanwhile__takes_over),
      cmocka_unit_test(looked__shut_out__naps_once),
      cmocka_unit_test(looked__poller_met_while_fetching__becomes_a_rival),
      cmocka_unit_test(looked__slow_machine__waits_longer_for_polls),
      cmocka_unit_test(sleep_end__the_first_reason_counts),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
