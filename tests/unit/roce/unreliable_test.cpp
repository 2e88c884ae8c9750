// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Unreliable connections and datagrams: the packets that arrive and those that are dropped. A loss or a stranger's
// packet must not stop a queue pair.
#include <initializer_list>

#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

void post(Endpoint& endpoint, const SendRequest& request) {
  assert_int_equal(endpoint.qp->post_send(request), PostError::kNone);
}

SendRequest datagram(Endpoint& endpoint, uint32_t length) {
  SendRequest request = endpoint.request(SendOpcode::kSendImmediate, length);
  request.remote_qpn = 0x22;
  request.remote_qkey = 0x1234;
  request.immediate_or_rkey = 77;
  return request;
}

void connection__send_and_write__bytes_and_completions(void**) {
  Pair pair(QpType::kUc);
  assert_true(pair.is_connected);
  pair.b.post_receive(2000, 4096);
  post(pair.a, pair.a.request(SendOpcode::kWrite, 700));
  post(pair.a, pair.a.request(SendOpcode::kSend, 900));
  pair.run();
  assert_int_equal(pair.a.sent.size(), 2);
  assert_memory_equal(pair.b.at(kBase), pair.a.at(kBase), 700);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  assert_memory_equal(pair.b.at(kBase + 4096), pair.a.at(kBase), 900);
  assert_true(pair.b.link.empty());
}

void connection__any_packet_lost__message_dropped_and_next_one_arrives(void**) {
  for (size_t lost = 0; lost < 4; lost++) {
    Pair pair(QpType::kUc);
    pair.b.post_receive(2000, 4096);
    post(pair.a, pair.a.request(SendOpcode::kSend, 4 * kMtu));
    pair.transmit();
    pair.a.link.erase(pair.a.link.begin() + static_cast<long>(lost));
    pair.run();
    assert_true(pair.b.receive_completions.all.empty());
    SendRequest next = pair.a.request(SendOpcode::kSend, 3 * kMtu, 8192);
    post(pair.a, next);
    pair.run();
    assert_int_equal(pair.b.receive_completions.all.size(), 1);
    assert_int_equal(pair.b.receive_completions.all[0].byte_count, 3 * kMtu);
    assert_memory_equal(pair.b.at(kBase + 4096), pair.a.at(kBase + 8192), 3 * kMtu);
  }
}

void connection__no_receive_or_wrong_key__dropped_and_alive(void**) {
  Pair pair(QpType::kUc);
  post(pair.a, pair.a.request(SendOpcode::kSend, 8));
  SendRequest write = pair.a.request(SendOpcode::kWrite, 8);
  write.rkey = kKey + 1;
  post(pair.a, write);
  pair.run();
  assert_int_equal(pair.b.qp->counters().dropped_packets, 2);
  assert_int_equal(pair.b.qp->state(), QpState::kRts);
  assert_true(pair.b.link.empty());
}

void connection__own_memory_gone__send_queue_error_and_recovery(void**) {
  Pair pair(QpType::kUc);
  pair.a.revoked = true;
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  pair.run();
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kLocalProtection);
  assert_int_equal(pair.a.sent[1].status, CompletionStatus::kFlushed);
  assert_int_equal(pair.a.qp->state(), QpState::kSqe);
  pair.a.revoked = false;
  QpAttributes attributes;
  attributes.state = QpState::kRts;
  assert_true(pair.a.qp->modify(attributes, kState));
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  pair.run();
  assert_int_equal(pair.a.sent[2].status, CompletionStatus::kSuccess);
}

void datagram__fits__header_room_and_sender(void**) {
  Pair pair(QpType::kUd);
  assert_true(pair.is_connected);
  pair.b.post_receive(kGrhSize + kMtu, 4096);
  post(pair.a, datagram(pair.a, 100));
  pair.run();
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  const Completion& completion = pair.b.receive_completions.all[0];
  assert_int_equal(completion.byte_count, kGrhSize + 100);
  assert_int_equal(completion.source_qpn, 0x11);
  assert_int_equal(completion.immediate_or_rkey, 77);
  assert_int_equal(completion.flags, kWithGrh | kWithImmediate);
  assert_memory_equal(pair.b.at(kBase + 4096 + kGrhSize), pair.a.at(kBase), 100);
}

void datagram__larger_than_the_mtu__local_error(void**) {
  Pair pair(QpType::kUd);
  post(pair.a, datagram(pair.a, kMtu + 1));
  pair.run();
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kLocalLength);
  assert_int_equal(pair.a.qp->state(), QpState::kSqe);
}

void datagram__wrong_qkey_too_long_or_unexpected__dropped_and_alive(void**) {
  Pair pair(QpType::kUd);
  post(pair.a, datagram(pair.a, 8));  // no receive
  pair.run();
  pair.b.post_receive(kGrhSize + 7);
  post(pair.a, datagram(pair.a, 8));  // too long
  SendRequest wrong = datagram(pair.a, 4);
  wrong.remote_qkey = 0x4321;
  post(pair.a, wrong);
  pair.run();
  assert_int_equal(pair.b.qp->counters().dropped_packets, 3);
  assert_true(pair.b.receive_completions.all.empty());
  post(pair.a, datagram(pair.a, 7));
  pair.run();
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
}

// The operation completes in its turn, and the requests behind it are flushed. A recovered queue pair goes on.
void assert_fails_in_its_turn(Pair& pair, const SendRequest& before, const SendRequest& request) {
  post(pair.a, before);
  post(pair.a, request);
  post(pair.a, before);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 3);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kSuccess);
  assert_int_equal(pair.a.sent[1].status, CompletionStatus::kLocalQpOperation);
  assert_int_equal(pair.a.sent[1].request_id, request.id);
  assert_int_equal(pair.a.sent[2].status, CompletionStatus::kFlushed);
  assert_int_equal(pair.a.qp->state(), QpState::kSqe);
  QpAttributes attributes;
  attributes.state = QpState::kRts;
  assert_true(pair.a.qp->modify(attributes, kState));
  pair.a.sent.clear();
}

// IBTA table 38.
void operations__that_the_transport_lacks__fail_in_their_turn(void**) {
  using O = SendOpcode;
  const O of_connections[] = {O::kWrite,    O::kWriteImmediate, O::kSendInvalidate,  O::kRead,       O::kCompareSwap,
                              O::kFetchAdd, O::kAtomicWrite,    O::kLocalInvalidate, O::kBindWindow, O::kFlush};
  Pair datagrams(QpType::kUd);
  for (const O opcode : of_connections) {
    assert_fails_in_its_turn(datagrams, datagram(datagrams.a, 8), datagrams.a.request(opcode, 8));
  }
  Pair connections(QpType::kUc);
  for (const O opcode : {O::kSendInvalidate, O::kRead, O::kCompareSwap, O::kFetchAdd, O::kAtomicWrite, O::kFlush}) {
    const SendRequest write = connections.a.request(O::kWrite, 8);
    assert_fails_in_its_turn(connections, write, connections.a.request(opcode, 8));
  }
  for (Pair* pair : {&datagrams, &connections}) {
    assert_int_equal(pair->a.qp->post_send(pair->a.request(static_cast<O>(10), 8)), PostError::kOpcode);
  }
}

void datagram__address_of_another_domain__fails_in_its_turn(void**) {
  Pair pair(QpType::kUd);
  pair.b.post_receive(2000);
  pair.b.post_receive(2000);
  SendRequest foreign = datagram(pair.a, 7);
  foreign.address.is_foreign = true;
  assert_fails_in_its_turn(pair, datagram(pair.a, 7), foreign);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
}

void packets__of_another_transport__dropped(void**) {
  Pair pair(QpType::kUd);
  pair.b.post_receive(2000);
  Headers headers;
  headers.opcode = opcode_of(Transport::kRc, Operation::kSendOnly);
  headers.psn = kFirstPsn;
  pair.inject(pair.b, headers, Bytes(8));
  headers.opcode = opcode_of(Transport::kUc, Operation::kSendOnly);
  pair.inject(pair.b, headers, Bytes(8));
  assert_int_equal(pair.b.qp->counters().dropped_packets, 2);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(connection__send_and_write__bytes_and_completions),
      cmocka_unit_test(connection__any_packet_lost__message_dropped_and_next_one_arrives),
      cmocka_unit_test(connection__no_receive_or_wrong_key__dropped_and_alive),
      cmocka_unit_test(connection__own_memory_gone__send_queue_error_and_recovery),
      cmocka_unit_test(datagram__fits__header_room_and_sender),
      cmocka_unit_test(datagram__larger_than_the_mtu__local_error),
      cmocka_unit_test(datagram__wrong_qkey_too_long_or_unexpected__dropped_and_alive),
      cmocka_unit_test(operations__that_the_transport_lacks__fail_in_their_turn),
      cmocka_unit_test(datagram__address_of_another_domain__fails_in_its_turn),
      cmocka_unit_test(packets__of_another_transport__dropped),
  };
  return cmocka_run_group_tests_name("roce-unreliable", tests, nullptr, nullptr);
}
