// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "roce/reliable/retry_timer.hpp"

#include <initializer_list>

// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;

namespace {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kValue = 4 * kMillisecond;

class TwoClocks final : public Clock {
 public:
  Time exact() override { return 1000 * kMillisecond; }
  Time rough() override { return 995 * kMillisecond; }
};

void start__twice_or_without_a_value__keeps_the_first_deadline(void**) {
  RetryTimer timer;
  timer.start(Time{10}, kNever);
  assert_false(timer.runs());
  timer.start(Time{10}, kValue);
  timer.start(Time{20}, kValue);
  assert_int_equal(timer.deadline(true), 10 + kValue);
  assert_int_equal(timer.deadline(false), kNever);
  assert_false(timer.has_come(10 + kValue - 1));
  assert_true(timer.has_come(10 + kValue));
  timer.cancel();
  assert_false(timer.runs());
}

void expire__after_an_acknowledgement__is_false(void**) {
  RetryTimer timer;
  timer.start(Time{0}, kValue);
  timer.acknowledged();
  assert_int_equal(timer.deadline(true), kValue);
  assert_false(timer.expire());
  assert_false(timer.runs());
  timer.start(kValue, kValue);
  assert_true(timer.expire());
}

void start__after_each_timeout__waits_twice_as_long_up_to_four_times(void**) {
  RetryTimer timer;
  for (const Time times : {Time{1}, Time{2}, Time{4}, Time{4}}) {
    timer.start(Time{0}, kValue);
    assert_int_equal(timer.deadline(true), times * kValue);
    assert_true(timer.expire());
    timer.be_patient();
  }
  timer.start(Time{0}, kValue);
  timer.acknowledged();
  assert_false(timer.runs());
  timer.start(Time{0}, kValue);
  assert_int_equal(timer.deadline(true), kValue);
}

void start__while_the_peer_has_no_receive__waits_for_it(void**) {
  RetryTimer timer;
  timer.start(Time{0}, kValue);
  timer.wait_for_receiver(Time{5}, 100);
  assert_true(timer.waits_for_receiver());
  timer.start(Time{6}, kValue);
  assert_false(timer.runs());
  assert_int_equal(timer.deadline(false), 105);
  assert_false(timer.end_wait_for_receiver(Time{104}));
  assert_true(timer.end_wait_for_receiver(Time{105}));
  assert_false(timer.waits_for_receiver());
  assert_true(timer.end_wait_for_receiver(Time{0}));
}

void start__long_wait__reads_the_rough_clock_and_is_long_enough(void**) {
  TwoClocks clock;
  const Time wait = 4000 * kMillisecond;
  RetryTimer timer;
  timer.start(clock, wait);
  assert_int_equal(timer.deadline(true), clock.rough() + kRoughError + wait);
  assert_true(timer.deadline(true) >= clock.exact() + wait);
  timer.reset();
  timer.start(clock, kValue);
  assert_int_equal(timer.deadline(true), clock.exact() + kValue);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(start__twice_or_without_a_value__keeps_the_first_deadline),
      cmocka_unit_test(expire__after_an_acknowledgement__is_false),
      cmocka_unit_test(start__after_each_timeout__waits_twice_as_long_up_to_four_times),
      cmocka_unit_test(start__while_the_peer_has_no_receive__waits_for_it),
      cmocka_unit_test(start__long_wait__reads_the_rough_clock_and_is_long_enough),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
