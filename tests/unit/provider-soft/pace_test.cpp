// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/pace.hpp"

#include "tests/unit/provider/cmocka.hpp"

using dapple::soft::Pace;

namespace {

// Requests between two times that the program takes completions.
void post(Pace& pace, uint32_t taken, uint32_t requests) {
  for (uint32_t i = 0; i < requests; i++) pace.note(taken);
}

void streams__few_requests_at_a_time__no(void**) {
  Pace pace;
  for (uint32_t taken = 0; taken < 1000; taken++) {
    post(pace, taken, 3);
    assert_false(pace.streams());
  }
}

void streams__many_requests_before_a_completion_is_taken__yes(void**) {
  Pace pace;
  post(pace, 7, 64);
  assert_true(pace.streams());
  // It goes on like this.
  for (uint32_t taken = 8; taken < 1000; taken++) {
    post(pace, taken, 64);
    assert_true(pace.streams());
  }
}

void streams__one_request_at_a_time_again__not_for_long(void**) {
  Pace pace;
  post(pace, 0, 64);
  uint32_t requests = 0;
  while (pace.streams() && requests < 100) pace.note(++requests);
  // One wait is no sign yet: a stream begins with one.
  assert_in_range(requests, 2, 20);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(streams__few_requests_at_a_time__no),
      cmocka_unit_test(streams__many_requests_before_a_completion_is_taken__yes),
      cmocka_unit_test(streams__one_request_at_a_time_again__not_for_long),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
