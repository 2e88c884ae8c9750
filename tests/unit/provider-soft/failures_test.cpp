// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/failures.hpp"

#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft::explain;
using dapple::roce::CompletionStatus;

namespace {

constexpr uint32_t kQueuePair = 0x12345, kPeer = 0x23456, kOtherPeer = 0x34567;

Failure failure_of(uint64_t id, CompletionStatus status) {
  Failure failure;
  failure.qpn = kQueuePair;
  failure.id = id;
  failure.status = status;
  return failure;
}

// Both complete before the program polls.
void keep__has_each_request(void**) {
  Failures failures;
  failures.keep(failure_of(1, CompletionStatus::kRetryExceeded), false);
  failures.keep(failure_of(2, CompletionStatus::kRemoteOperation), false);
  failures.keep(failure_of(1, CompletionStatus::kLocalLength), true);
  assert_true(failures.take(kQueuePair, false, 1, CompletionStatus::kRetryExceeded).has_value());
  assert_true(failures.take(kQueuePair, false, 2, CompletionStatus::kRemoteOperation).has_value());
  assert_true(failures.take(kQueuePair, true, 1, CompletionStatus::kLocalLength).has_value());
}

// A program polls nothing of its receives. Their number is higher than that of the requests that it does poll.
void keep__forgets_the_oldest(void**) {
  Failures failures;
  for (uint64_t id = 0; id < 5000; ++id) failures.keep(failure_of(id + 10, CompletionStatus::kFlushed), true);
  failures.keep(failure_of(1, CompletionStatus::kRetryExceeded), false);
  failures.keep(failure_of(6000, CompletionStatus::kFlushed), true);
  assert_true(failures.take(kQueuePair, false, 1, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(kQueuePair, true, 10, CompletionStatus::kFlushed).has_value());
  assert_true(failures.take(kQueuePair, true, 5009, CompletionStatus::kFlushed).has_value());
}

void take__forgets_the_failure(void**) {
  Failures failures;
  failures.keep(failure_of(1, CompletionStatus::kRetryExceeded), false);
  assert_false(failures.take(kQueuePair, false, 1, CompletionStatus::kFlushed).has_value());
  assert_true(failures.take(kQueuePair, false, 1, CompletionStatus::kRetryExceeded).has_value());
  assert_false(failures.take(kQueuePair, false, 1, CompletionStatus::kRetryExceeded).has_value());
}

// A queue pair has refused a request of a peer that has ended, and is connected with another one now.
void take_refusal__finds_that_of_this_peer_alone(void**) {
  Failures failures;
  failures.keep_refusal(kQueuePair, kPeer, {"the key belongs to no memory there", "Send it anew."});
  assert_true(failures.take_refusal(kQueuePair, kOtherPeer).text.empty());
  assert_string_equal(failures.take_refusal(kQueuePair, kPeer).text.c_str(), "the key belongs to no memory there");
  assert_true(failures.take_refusal(kQueuePair, kPeer).text.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(keep__has_each_request),
      cmocka_unit_test(keep__forgets_the_oldest),
      cmocka_unit_test(take__forgets_the_failure),
      cmocka_unit_test(take_refusal__finds_that_of_this_peer_alone),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
