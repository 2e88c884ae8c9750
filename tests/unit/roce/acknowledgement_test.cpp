// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The place of acknowledgements among the packets of a turn.
#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

void post(Endpoint& endpoint, SendOpcode opcode) {
  const SendRequest request = endpoint.request(opcode, 8);
  assert_int_equal(endpoint.qp->post_send(request), PostError::kNone);
}

Operation operation_of(const Endpoint& endpoint, size_t number) {
  assert_true(number < endpoint.link.size());
  return Pair::parsed(endpoint.link[number]).info->operation;
}

// `b` has received a request of `a`.
void receive_a_request(Pair& pair, SendOpcode opcode) {
  post(pair.a, opcode);
  pair.a.qp->transmit(pair.now, pair.a);
  pair.deliver(pair.a, pair.b);
}

void acknowledgement__follows_the_requests(void**) {
  Pair pair;
  receive_a_request(pair, SendOpcode::kWrite);
  post(pair.b, SendOpcode::kWrite);
  assert_false(pair.b.qp->transmit(pair.now, pair.b));
  assert_int_equal(pair.b.link.size(), 2);
  assert_int_equal(operation_of(pair.b, 0), Operation::kWriteOnly);
  assert_int_equal(operation_of(pair.b, 1), Operation::kAcknowledge);
}

void acknowledgement__waits_for_one_full_turn_only(void**) {
  Pair pair;
  receive_a_request(pair, SendOpcode::kWrite);
  for (int i = 0; i < 3; i++) post(pair.b, SendOpcode::kWrite);
  pair.b.link_room = 1;
  assert_true(pair.b.qp->transmit(pair.now, pair.b));
  pair.b.link_room = 2;
  assert_true(pair.b.qp->transmit(pair.now, pair.b));
  assert_int_equal(operation_of(pair.b, 1), Operation::kAcknowledge);
}

void nak__comes_before_the_requests(void**) {
  Pair pair;
  receive_a_request(pair, SendOpcode::kSend);  // without a receive
  post(pair.b, SendOpcode::kWrite);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(operation_of(pair.b, 0), Operation::kAcknowledge);
  assert_int_equal(operation_of(pair.b, 1), Operation::kWriteOnly);
}

void response__comes_before_the_requests(void**) {
  Pair pair;
  receive_a_request(pair, SendOpcode::kRead);
  post(pair.b, SendOpcode::kWrite);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(operation_of(pair.b, 0), Operation::kReadResponseOnly);
}

void owes__an_acknowledgement_after_a_write(void**) {
  Pair pair;
  assert_int_equal(pair.b.qp->owes(), Owes::kNothing);
  receive_a_request(pair, SendOpcode::kWrite);
  assert_int_equal(pair.b.qp->owes(), Owes::kAcknowledgement);
  assert_int_equal(pair.a.qp->owes(), Owes::kNothing);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.qp->owes(), Owes::kNothing);
}

void owes__more_with_requests(void**) {
  Pair pair;
  receive_a_request(pair, SendOpcode::kWrite);
  post(pair.b, SendOpcode::kWrite);
  assert_int_equal(pair.b.qp->owes(), Owes::kMore);
}

void owes__more_with_a_response_or_a_nak(void**) {
  Pair read, nak;
  receive_a_request(read, SendOpcode::kRead);
  assert_int_equal(read.b.qp->owes(), Owes::kMore);
  receive_a_request(read, SendOpcode::kWrite);
  assert_int_equal(read.b.qp->owes(), Owes::kMore);
  receive_a_request(nak, SendOpcode::kSend);
  assert_int_equal(nak.b.qp->owes(), Owes::kMore);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(acknowledgement__follows_the_requests),
      cmocka_unit_test(acknowledgement__waits_for_one_full_turn_only),
      cmocka_unit_test(nak__comes_before_the_requests),
      cmocka_unit_test(response__comes_before_the_requests),
      cmocka_unit_test(owes__an_acknowledgement_after_a_write),
      cmocka_unit_test(owes__more_with_requests),
      cmocka_unit_test(owes__more_with_a_response_or_a_nak),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
