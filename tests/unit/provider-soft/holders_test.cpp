// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/holders.hpp"

#include "provider/soft/explain/failures.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft::explain;
using dapple::roce::CompletionStatus;

namespace {

const char domain = 0, queue = 0, made[6] = {};

void of__several_users__names_some_and_counts_all(void**) {
  Holders holders;
  size_t all = 1;
  assert_true(holders.of(&domain, all).empty());
  assert_int_equal(all, 0);
  for (const char& each : made) holders.add(&each, "a region", "made by ibv_reg_mr", {&domain});
  holders.add(&queue, "queue pair 0x11", "made by ibv_create_qp", {nullptr, &domain, &queue});
  assert_int_equal(holders.of(&domain, all).size(), Holders::kMax);
  assert_int_equal(all, 7);
  const auto users = holders.of(&queue, all);
  assert_int_equal(all, 1);
  assert_string_equal(users.at(0).name.c_str(), "queue pair 0x11");
  assert_string_equal(users.at(0).made.title, "made by ibv_create_qp");
}

void remove__object_that_is_gone__uses_nothing(void**) {
  Holders holders;
  size_t all = 0;
  holders.add(&made[0], "a region", "made by ibv_reg_mr", {&domain});
  holders.remove(&made[1]);
  holders.of(&domain, all);
  assert_int_equal(all, 1);
  holders.remove(&made[0]);
  assert_true(holders.of(&domain, all).empty());
}

void take__failure_of_this_request__is_told_once(void**) {
  Failures failures;
  Failure failure;
  failure.qpn = 0x11;
  failure.id = 7;
  failure.status = CompletionStatus::kRetryExceeded;
  failures.keep(failure, false);
  assert_false(failures.take(0x11, true, 7, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(0x12, false, 7, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(0x11, false, 8, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(0x11, false, 7, CompletionStatus::kRemoteAccess).has_value());
  assert_true(failures.take(0x11, false, 7, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(0x11, false, 7, CompletionStatus::kRetryExceeded).has_value());
}

void keep__queue_pairs_that_nobody_polls__do_not_grow_for_ever(void**) {
  Failures failures;
  Failure failure;
  failure.status = CompletionStatus::kRetryExceeded;
  for (uint32_t qpn = 1; qpn <= 5000; qpn++) {
    failure.qpn = qpn;
    failures.keep(failure, false);
  }
  assert_true(failures.take(5000, false, 0, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(1, false, 0, CompletionStatus::kRetryExceeded).has_value());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(of__several_users__names_some_and_counts_all),
      cmocka_unit_test(remove__object_that_is_gone__uses_nothing),
      cmocka_unit_test(take__failure_of_this_request__is_told_once),
      cmocka_unit_test(keep__queue_pairs_that_nobody_polls__do_not_grow_for_ever),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
