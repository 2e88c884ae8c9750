// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/mark_hosts.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;
using namespace dapple::soft::check;

Route to(unsigned peer) {
  Route route;
  route.source[15] = 1;
  route.destination[14] = static_cast<uint8_t>(peer >> 8);
  route.destination[15] = static_cast<uint8_t>(peer);
  return route;
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

// Two links may have the same link-local addresses.
void answered__same_addresses_on_another_netdev__is_another_host(void**) {
  MarkHosts hosts;
  const auto question = hosts.due(to(2), 1);
  hosts.answered(to(2), {.transaction = question->transaction, .host = 42});
  Route other = to(2);
  other.netdev_index = 7;
  assert_true(hosts.host(other) == kThisHost);
  assert_true(hosts.due(other, 1).has_value());
}

void forget__a_host__is_asked_again_and_leaves_its_place(void**) {
  MarkHosts hosts;
  const auto question = hosts.due(to(0), 1);
  hosts.answered(to(0), {.transaction = question->transaction, .host = 42});
  for (unsigned i = 1; i < MarkHosts::kMax; i++) assert_true(hosts.due(to(i), 1).has_value());
  assert_true(hosts.has(to(0)));
  hosts.forget(to(0));
  assert_false(hosts.has(to(0)));
  assert_true(hosts.host(to(0)) == kThisHost);
  const auto again = hosts.due(to(0), 2);
  assert_true(again && again->transaction != question->transaction);
  hosts.answered(to(0), {.transaction = again->transaction, .host = 43});
  assert_int_equal(hosts.host(to(0)), 43);
}

void due__very_many_hosts__are_not_asked(void**) {
  MarkHosts hosts;
  for (unsigned i = 0; i < MarkHosts::kMax; i++) assert_true(hosts.due(to(i), 1).has_value());
  assert_false(hosts.due(to(MarkHosts::kMax), 1).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(due__no_answer__asks_a_few_times_with_longer_waits),
      cmocka_unit_test(answered__the_question__names_the_host),
      cmocka_unit_test(answered__nobody_has_asked__is_ignored),
      cmocka_unit_test(answered__another_version__takes_no_marks),
      cmocka_unit_test(answered__same_addresses_on_another_netdev__is_another_host),
      cmocka_unit_test(forget__a_host__is_asked_again_and_leaves_its_place),
      cmocka_unit_test(due__very_many_hosts__are_not_asked),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
