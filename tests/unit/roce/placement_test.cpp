// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Writes and Reads that the requester's sink carries out in the peer's memory: which ones are offered, and in which
// order they complete among the others.
#include <initializer_list>

#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

constexpr uint32_t kSize = 700;
constexpr uint64_t kPlace = 4096;

uint64_t post(Endpoint& endpoint, SendOpcode opcode, uint32_t length = kSize, uint8_t flags = kSignaled) {
  SendRequest request = endpoint.request(opcode, length);
  request.remote_address = kBase + kPlace;
  request.flags = flags;
  assert_int_equal(endpoint.qp->post_send(request), PostError::kNone);
  return request.id;
}

bool same_bytes(Pair& pair) {
  return memcmp(pair.a.at(kBase), pair.b.at(kBase + kPlace), kSize) == 0;
}

void expect_success(const Endpoint& endpoint, size_t number, uint64_t id) {
  assert_true(number < endpoint.sent.size());
  assert_int_equal(endpoint.sent[number].request_id, id);
  assert_int_equal(endpoint.sent[number].status, CompletionStatus::kSuccess);
}

void write_and_read__placed__complete_without_packets(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  const uint64_t write = post(pair.a, SendOpcode::kWrite);
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_true(same_bytes(pair));
  memset(pair.b.at(kBase + kPlace), 9, kSize);
  const uint64_t read = post(pair.a, SendOpcode::kRead);
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_true(same_bytes(pair));
  assert_true(pair.a.link.empty());
  expect_success(pair.a, 0, write);
  expect_success(pair.a, 1, read);
  assert_int_equal(pair.a.sent[0].opcode, CompletionOpcode::kWrite);
  assert_int_equal(pair.a.sent[1].opcode, CompletionOpcode::kRead);
  assert_true(pair.a.qp->deadline() == kNever);
}

void inline_write__placed(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  std::byte bytes[40];
  memset(bytes, 3, sizeof bytes);
  const Segment segment = {reinterpret_cast<uintptr_t>(bytes), sizeof bytes, 0};
  SendRequest request = pair.a.request(SendOpcode::kWrite, 0);
  request.flags |= kInline;
  request.segments = {&segment, 1};
  assert_int_equal(pair.a.qp->post_send(request), PostError::kNone);
  memset(bytes, 4, sizeof bytes);
  pair.a.qp->transmit(pair.now, pair.a);
  expect_success(pair.a, 0, request.id);
  assert_true(*pair.b.at(kBase) == std::byte{3} && *pair.b.at(kBase + 39) == std::byte{3});
}

void write__behind_a_send_that_waits__goes_as_packets_after_it(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  const uint64_t send = post(pair.a, SendOpcode::kSend);
  const uint64_t write = post(pair.a, SendOpcode::kWrite);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.a.offered, 0);
  pair.run();  // without a receive: RNR
  assert_false(same_bytes(pair));
  pair.b.post_receive(kSize, 16384);
  pair.sleep();
  pair.run();
  assert_true(same_bytes(pair));
  expect_success(pair.a, 0, send);
  expect_success(pair.a, 1, write);
  const uint64_t next = post(pair.a, SendOpcode::kWrite);
  pair.a.qp->transmit(pair.now, pair.a);
  expect_success(pair.a, 2, next);
  assert_true(pair.a.link.empty());
}

void write__behind_writes_that_are_on_their_way__waits_and_is_placed(void**) {
  Pair pair;
  post(pair.a, SendOpcode::kWrite);
  post(pair.a, SendOpcode::kRead);
  pair.a.qp->transmit(pair.now, pair.a);
  pair.a.places_into = &pair.b;
  pair.a.offered = 0;
  const uint64_t last = post(pair.a, SendOpcode::kWrite);
  const size_t packets = pair.a.link.size();
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_int_equal(pair.a.link.size(), packets);
  assert_int_equal(pair.a.offered, 0);
  pair.run();
  assert_int_equal(pair.a.offered, 1);
  assert_int_equal(pair.a.sent.size(), 3);
  expect_success(pair.a, 2, last);
}

void write__behind_writes_and_not_placeable__does_not_wait(void**) {
  Pair pair;
  post(pair.a, SendOpcode::kWrite, 8);
  post(pair.a, SendOpcode::kWrite, 8);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.a.link.size(), 2);
}

void packets__after_a_placed_write__go_on_with_their_numbers(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  const uint64_t first = post(pair.a, SendOpcode::kWrite);
  for (int i = 0; i < 2; i++) post(pair.a, SendOpcode::kWrite);
  pair.b.post_receive(kSize, 16384);
  post(pair.a, SendOpcode::kSend);
  post(pair.a, SendOpcode::kFetchAdd, 8);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 5);
  for (size_t i = 0; i < 5; i++) expect_success(pair.a, i, first + i);
  assert_int_equal(pair.b.qp->counters().sequence_naks_sent, 0);
  assert_int_equal(pair.b.atomics, 1);
}

void other_operations__not_offered(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  for (const SendOpcode opcode :
       {SendOpcode::kSend, SendOpcode::kWriteImmediate, SendOpcode::kFetchAdd, SendOpcode::kAtomicWrite}) {
    pair.b.post_receive(kSize, 16384);
    post(pair.a, opcode, 8);
    pair.run();
  }
  post(pair.a, SendOpcode::kWrite, 0);
  pair.run();
  assert_int_equal(pair.a.offered, 0);
  assert_int_equal(pair.a.sent.size(), 5);
}

void unsignaled_write__placed__no_completion(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  post(pair.a, SendOpcode::kWrite, kSize, 0);
  const uint64_t fenced = post(pair.a, SendOpcode::kWrite, kSize, kSignaled | kFence);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.a.offered, 2);
  assert_int_equal(pair.a.sent.size(), 1);
  expect_success(pair.a, 0, fenced);
}

void write__in_parts__next_turns_go_on(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  pair.a.place_at_once = 300;
  const uint64_t write = post(pair.a, SendOpcode::kWrite);
  const uint64_t behind = post(pair.a, SendOpcode::kWrite, 8);
  assert_true(pair.a.qp->transmit(pair.now, pair.a));
  assert_true(pair.a.qp->transmit(pair.now, pair.a));
  assert_true(pair.a.sent.empty());
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_true(same_bytes(pair));
  expect_success(pair.a, 0, write);
  expect_success(pair.a, 1, behind);
  assert_true(pair.a.link.empty());
}

void write__in_parts__queue_drains_after_the_last(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  pair.a.place_at_once = 300;
  post(pair.a, SendOpcode::kWrite);
  post(pair.a, SendOpcode::kWrite, 8);
  assert_true(pair.a.qp->transmit(pair.now, pair.a));
  QpAttributes attributes;
  attributes.state = QpState::kSqd;
  attributes.notify_drained = true;
  assert_true(pair.a.qp->modify(attributes, kState | kNotifyDrained));
  assert_true(pair.a.raised.empty());
  while (pair.a.qp->transmit(pair.now, pair.a)) {
  }
  assert_true(same_bytes(pair));
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.raised.size(), 1);
  assert_int_equal(pair.a.raised[0], QpEvent::kSendQueueDrained);
}

void write__refused_after_a_part__all_of_it_goes_as_packets(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  pair.a.place_at_once = 300;
  const uint64_t write = post(pair.a, SendOpcode::kWrite);
  assert_true(pair.a.qp->transmit(pair.now, pair.a));
  pair.a.places_into = nullptr;
  memset(pair.b.at(kBase + kPlace), 0, kSize);
  pair.run();
  assert_true(same_bytes(pair));
  expect_success(pair.a, 0, write);
}

void write__part_placed__flushed_by_an_error(void**) {
  Pair pair;
  pair.a.places_into = &pair.b;
  pair.a.place_at_once = 300;
  post(pair.a, SendOpcode::kWrite);
  assert_true(pair.a.qp->transmit(pair.now, pair.a));
  QpAttributes attributes;
  attributes.state = QpState::kError;
  assert_true(pair.a.qp->modify(attributes, kState));
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kFlushed);
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_int_equal(pair.a.offered, 1);
}

void write__behind_one_that_was_placed_in_part__is_placed_from_its_beginning(void**) {
  for (const bool is_reset : {false, true}) {
    Pair pair;
    pair.a.places_into = &pair.b;
    pair.a.place_at_once = 300;
    post(pair.a, SendOpcode::kWrite);
    assert_true(pair.a.qp->transmit(pair.now, pair.a));
    if (is_reset) {
      QpAttributes attributes;
      attributes.state = QpState::kReset;
      assert_true(pair.a.qp->modify(attributes, kState));
      assert_true(pair.a.connect(0x22));
    } else {
      pair.a.places_into = nullptr;
      pair.run();
      pair.a.places_into = &pair.b;
    }
    memset(pair.b.at(kBase + kPlace), 0, kSize);
    pair.a.place_at_once = UINT64_MAX;
    const uint64_t next = post(pair.a, SendOpcode::kWrite);
    assert_false(pair.a.qp->transmit(pair.now, pair.a));
    assert_true(same_bytes(pair));
    expect_success(pair.a, is_reset ? 0 : 1, next);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(write_and_read__placed__complete_without_packets),
      cmocka_unit_test(inline_write__placed),
      cmocka_unit_test(write__behind_a_send_that_waits__goes_as_packets_after_it),
      cmocka_unit_test(write__behind_writes_that_are_on_their_way__waits_and_is_placed),
      cmocka_unit_test(write__behind_writes_and_not_placeable__does_not_wait),
      cmocka_unit_test(packets__after_a_placed_write__go_on_with_their_numbers),
      cmocka_unit_test(other_operations__not_offered),
      cmocka_unit_test(unsignaled_write__placed__no_completion),
      cmocka_unit_test(write__in_parts__queue_drains_after_the_last),
      cmocka_unit_test(write__in_parts__next_turns_go_on),
      cmocka_unit_test(write__refused_after_a_part__all_of_it_goes_as_packets),
      cmocka_unit_test(write__behind_one_that_was_placed_in_part__is_placed_from_its_beginning),
      cmocka_unit_test(write__part_placed__flushed_by_an_error),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
