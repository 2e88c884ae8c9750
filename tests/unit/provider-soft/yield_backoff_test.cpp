// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/yield_backoff.hpp"

#include "tests/unit/provider/cmocka.hpp"

using dapple::roce::Time;
using dapple::soft::YieldBackoff;

namespace {

constexpr Time kMicrosecond = 1'000, kMillisecond = 1'000'000;

Time time_now;

// Polls for `span` with a yield of `length` after each microsecond. Returns the number of yields.
unsigned yields(YieldBackoff& yield, Time span, Time length) {
  unsigned count = 0;
  for (const Time end = time_now + span; time_now < end; time_now += kMicrosecond) {
    yield([] { return time_now; },
          [&] {
            count++;
            time_now += length;
          });
  }
  return count;
}

void peers_on_one_cpu__every_poll_yields(void**) {
  time_now = 1;
  YieldBackoff yield;
  assert_int_equal(yields(yield, 31 * kMillisecond, 30 * kMicrosecond), 1000);
}

void programs_that_compute__take_a_ninth_of_the_time(void**) {
  time_now = 1;
  YieldBackoff yield;
  const unsigned count = yields(yield, 270 * kMillisecond, 3 * kMillisecond);
  assert_in_range(count, 9, 11);
}

void no_more_computing__yields_resume(void**) {
  time_now = 1;
  YieldBackoff yield;
  assert_int_equal(yields(yield, kMicrosecond, 3 * kMillisecond), 1);
  assert_int_equal(yields(yield, 23 * kMillisecond, kMicrosecond), 0);
  assert_in_range(yields(yield, 31 * kMillisecond, 30 * kMicrosecond), 900, 1100);
}

void no_other_thread__yields_are_rare(void**) {
  time_now = 1;
  YieldBackoff yield;
  assert_in_range(yields(yield, 2 * kMillisecond, kMicrosecond), 85, 100);
  assert_in_range(yields(yield, 31 * kMillisecond, 30 * kMicrosecond), 990, 1000);
}

void a_minute_away__yields_resume_soon(void**) {
  time_now = 1;
  YieldBackoff yield;
  assert_int_equal(yields(yield, kMicrosecond, 60'000 * kMillisecond), 1);
  assert_int_equal(yields(yield, 150 * kMillisecond, kMicrosecond), 0);
  assert_in_range(yields(yield, 31 * kMillisecond, 30 * kMicrosecond), 300, 1'000);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(peers_on_one_cpu__every_poll_yields),
      cmocka_unit_test(programs_that_compute__take_a_ninth_of_the_time),
      cmocka_unit_test(no_more_computing__yields_resume),
      cmocka_unit_test(no_other_thread__yields_are_rare),
      cmocka_unit_test(a_minute_away__yields_resume_soon),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
