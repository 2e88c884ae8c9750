// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/mark_hosts.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;
using namespace dapple::soft::check;

Addresses to(unsigned peer) {
  Addresses path;
  path.source[15] = 1;
  path.destination[14] = static_cast<uint8_t>(peer >> 8);
  path.destination[15] = static_cast<uint8_t>(peer);
  return path;
}

void due__no_answer__asks_a_few_times_with_longer_waits(void**) {
  MarkHosts hosts;
  assert_int_equal(hosts.deadline(to(2)), dapple::roce::kNever);
  uint64_t now = 1000, transaction = 0;
  for (uint32_t i = 0; i < MarkHosts::kTries; i++) {
    const auto question = hosts.due(to(2), now);
    assert_true(question.has_value());
    assert_true(i == 0 || question->transaction == transaction);
    transaction = question->transaction;
    assert_false(hosts.due(to(2), now).has_value());
    const uint64_t next = i + 1 < MarkHosts::kTries ? hosts.deadline(to(2)) : now + 1'000'000'000;
    assert_true(next >= now + (MarkHosts::kFirstWait << i));
    now = next;
  }
  assert_int_equal(hosts.deadline(to(2)), dapple::roce::kNever);
  assert_false(hosts.due(to(2), UINT64_MAX).has_value());
  assert_true(hosts.host(to(2)) == kThisHost);
}

void answered__the_question__names_the_host(void**) {
  MarkHosts hosts;
  const auto question = hosts.due(to(2), 1);
  hosts.answered(to(2), {.transaction = question->transaction, .host = 42});
  assert_int_equal(hosts.host(to(2)), 42);
  assert_true(hosts.host(to(3)) == kThisHost);
  assert_int_equal(hosts.deadline(to(2)), dapple::roce::kNever);
  assert_false(hosts.due(to(2), UINT64_MAX).has_value());
  // Nobody changes it afterwards.
  hosts.answered(to(2), {.transaction = question->transaction, .host = 43});
  assert_int_equal(hosts.host(to(2)), 42);
}

void answered__nobody_has_asked__is_ignored(void**) {
  MarkHosts hosts;
  const auto question = hosts.due(to(2), 1);
  hosts.answered(to(2), {.transaction = question->transaction + 1, .host = 42});
  hosts.answered(to(3), {.transaction = question->transaction, .host = 42});
  assert_true(hosts.host(to(2)) == kThisHost && hosts.host(to(3)) == kThisHost);
}

void answered__another_version__takes_no_marks(void**) {
  MarkHosts hosts;
  const auto question = hosts.due(to(2), 1);
  hosts.answered(to(2), {.transaction = question->transaction, .version = kMarkVersion + 1, .host = 42});
  assert_true(hosts.host(to(2)) == kThisHost);
  assert_false(hosts.due(to(2), UINT64_MAX).has_value());
}

void due__very_many_hosts__are_not_asked(void**) {
  MarkHosts hosts;
  for (unsigned i = 0; i < MarkHosts::kMost; i++) assert_true(hosts.due(to(i), 1).has_value());
  assert_false(hosts.due(to(MarkHosts::kMost), 1).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(due__no_answer__asks_a_few_times_with_longer_waits),
      cmocka_unit_test(answered__the_question__names_the_host),
      cmocka_unit_test(answered__nobody_has_asked__is_ignored),
      cmocka_unit_test(answered__another_version__takes_no_marks),
      cmocka_unit_test(due__very_many_hosts__are_not_asked),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
