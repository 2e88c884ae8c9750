// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reliable connections, packet by packet: the states of a queue pair and its attributes.
#include <initializer_list>

#include "tests/unit/roce/connection.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

bool stop_sending(Endpoint& end, uint32_t asked) {
  QpAttributes attributes;
  attributes.state = QpState::kSqd;
  attributes.notify_drained = true;
  return end.qp->modify(attributes, kState | asked);
}

bool send_again(Endpoint& end) {
  QpAttributes attributes;
  attributes.state = QpState::kRts;
  return end.qp->modify(attributes, kState);
}

void sqd__requests_under_way__finished_then_drained(void**) {
  Pair pair;
  for (int i = 0; i < 3; i++) post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  pair.transmit();
  assert_true(stop_sending(pair.a, kNotifyDrained));
  assert_true(pair.a.raised.empty());
  assert_true(pair.a.qp->attributes().draining);
  pair.run();
  assert_false(pair.a.qp->attributes().draining);
  assert_int_equal(pair.a.sent.size(), 2);
  assert_int_equal(pair.a.raised.size(), 1);
  assert_int_equal(pair.a.raised[0], QpEvent::kSendQueueDrained);
  assert_true(send_again(pair.a));
  assert_false(pair.a.qp->attributes().draining);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 3);
}

void sqd__event_not_asked_for_again__does_not_come(void**) {
  Pair pair;
  for (const uint32_t asked : {uint32_t{kNotifyDrained}, 0u}) {
    assert_true(stop_sending(pair.a, asked));
    assert_int_equal(pair.a.raised.size(), 1);
    assert_true(send_again(pair.a));
  }
}

void attributes__psns__are_those_of_the_next_packets(void**) {
  Pair pair;
  const QpAttributes sender = pair.a.qp->attributes();
  const QpAttributes receiver = pair.b.qp->attributes();
  post(pair.a, pair.a.request(SendOpcode::kWrite, 3 * sender.path_mtu));
  pair.run();
  assert_int_equal(pair.a.qp->attributes().send_psn, psn_add(sender.send_psn, 3));
  assert_int_equal(pair.b.qp->attributes().receive_psn, psn_add(receiver.receive_psn, 3));
}

// The third Read has a PSN already and waits for the end of the second.
void sqd__no_more_reads_allowed__waiting_read_fails(void**) {
  Pair pair;
  for (int i = 0; i < 3; i++) post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  pair.transmit();
  assert_true(stop_sending(pair.a, 0));
  pair.run();
  assert_int_equal(pair.a.sent.size(), 2);
  QpAttributes attributes;
  attributes.state = QpState::kSqd;
  attributes.max_rd_atomic = 0;
  assert_true(pair.a.qp->modify(attributes, kState | kMaxRdAtomic));
  assert_true(send_again(pair.a));
  pair.run();
  assert_int_equal(pair.a.sent.size(), 3);
  assert_sent(pair.a, 1, CompletionStatus::kSuccess);
  assert_sent(pair.a, 2, CompletionStatus::kLocalQpOperation);
}

// IBTA table 91: from SQD to SQD the number of Reads that may be under way can change, while some are.
void sqd__more_reads_allowed__they_go_together(void**) {
  Pair pair;
  for (int i = 0; i < 8; i++) post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  pair.transmit();
  assert_int_equal(pair.a.link.size(), 2);
  QpAttributes attributes;
  attributes.state = QpState::kSqd;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 5;
  assert_true(stop_sending(pair.a, 0));
  assert_true(pair.a.qp->modify(attributes, kState | kMaxRdAtomic));
  assert_true(stop_sending(pair.b, 0));
  assert_true(pair.b.qp->modify(attributes, kState | kMaxDestRdAtomic));
  pair.run();
  assert_int_equal(pair.a.sent.size(), 2);
  assert_true(send_again(pair.a));
  pair.transmit();
  assert_int_equal(pair.a.link.size(), 5);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 8);
  for (size_t i = 0; i < 8; i++) assert_sent(pair.a, i, CompletionStatus::kSuccess);
}

void error__posts_afterwards__flushed_at_once(void**) {
  Pair pair;
  QpAttributes attributes;
  attributes.state = QpState::kError;
  assert_true(pair.a.qp->modify(attributes, kState));
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  pair.a.post_receive(8);
  assert_sent(pair.a, 0, CompletionStatus::kFlushed);
  assert_int_equal(pair.a.receive_completions.all[0].status, CompletionStatus::kFlushed);
}

void modify__missing_unknown_or_impossible__refused_and_nothing_changed(void**) {
  Endpoint endpoint(QpType::kRc, 1);
  QpAttributes attributes;
  attributes.state = QpState::kInit;
  const uint32_t init = kState | kPkeyIndex | kPort | kAccessFlags;
  assert_false(endpoint.qp->modify(attributes, init & ~static_cast<uint32_t>(kPort)));
  assert_false(endpoint.qp->modify(attributes, init | kTimeout));
  attributes.state = QpState::kRts;
  assert_false(endpoint.qp->modify(attributes, init));
  assert_int_equal(endpoint.qp->state(), QpState::kReset);
  assert_int_equal(endpoint.qp->post_send(endpoint.request(SendOpcode::kSend, 8)), PostError::kState);
  assert_true(endpoint.move({}, QpState::kInit));
  attributes = {};
  attributes.path_mtu = 1000;
  assert_false(endpoint.move(attributes, QpState::kRtr));
  assert_int_equal(endpoint.qp->state(), QpState::kInit);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(sqd__requests_under_way__finished_then_drained),
      cmocka_unit_test(sqd__event_not_asked_for_again__does_not_come),
      cmocka_unit_test(attributes__psns__are_those_of_the_next_packets),
      cmocka_unit_test(sqd__no_more_reads_allowed__waiting_read_fails),
      cmocka_unit_test(sqd__more_reads_allowed__they_go_together),
      cmocka_unit_test(error__posts_afterwards__flushed_at_once),
      cmocka_unit_test(modify__missing_unknown_or_impossible__refused_and_nothing_changed),
  };
  return cmocka_run_group_tests_name("roce-states", tests, nullptr, nullptr);
}
