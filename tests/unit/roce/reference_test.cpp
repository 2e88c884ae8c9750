// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Sends whose packets refer to their bytes: the conditions for such packets, their effects on PSNs, receives and
// errors, and the change to packets that have the bytes.
#include <initializer_list>

#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

constexpr uint32_t kLength = 20 * kMtu + 77;
constexpr uint64_t kPlace = 40000;

struct Referring : Pair {
  Referring() { a.refers = b.refers = true; }
  uint64_t send(uint32_t length = kLength, SendOpcode opcode = SendOpcode::kSend) {
    const SendRequest request = a.request(opcode, length);
    assert_int_equal(a.qp->post_send(request), PostError::kNone);
    return request.id;
  }
  bool arrived(uint64_t offset, uint32_t length) { return memcmp(a.at(kBase), b.at(kBase + offset), length) == 0; }
  void expect(size_t number, CompletionStatus status, uint32_t length = kLength) const {
    assert_true(number < a.sent.size() && number < b.receive_completions.all.size());
    assert_int_equal(a.sent[number].status, status);
    assert_int_equal(b.receive_completions.all[number].status, status);
    if (status == CompletionStatus::kSuccess) assert_int_equal(b.receive_completions.all[number].byte_count, length);
  }
  // Packets that wait for the peer, and those of them without bytes.
  size_t packets() const { return a.link.size(); }
  size_t references() const { return a.loans.size(); }
};

void send__long__one_packet(void**) {
  Referring pair;
  pair.b.post_receive(kLength, kPlace);
  pair.send();
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.packets(), 1);
  assert_int_equal(pair.references(), 1);
  pair.run();
  pair.expect(0, CompletionStatus::kSuccess);
  assert_true(pair.arrived(kPlace, kLength));
  assert_true(pair.a.qp->deadline() == kNever);
}

void send__of_one_packet_or_inline__carries_its_bytes(void**) {
  Referring pair;
  pair.b.post_receive(kMtu, kPlace);
  pair.send(kMtu);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.references(), 0);
  pair.run();
  pair.expect(0, CompletionStatus::kSuccess, kMtu);
}

void write__long__carries_its_bytes(void**) {
  Referring pair;
  pair.send(kLength, SendOpcode::kWrite);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.references(), 0);
  assert_true(pair.packets() > 1);
}

void send__many__not_bound_by_the_window_and_in_order(void**) {
  Referring pair;
  constexpr size_t kSends = 12;
  for (size_t i = 0; i < kSends; i++) {
    pair.b.post_receive(kLength, i * kLength);
    pair.send(i % 3 == 2 ? 100 : kLength, i % 2 == 0 ? SendOpcode::kSend : SendOpcode::kSendImmediate);
  }
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.packets(), kSends);
  pair.run();
  for (size_t i = 0; i < kSends; i++) {
    const uint32_t length = i % 3 == 2 ? 100 : kLength;
    pair.expect(i, CompletionStatus::kSuccess, length);
    assert_int_equal(pair.b.receive_completions.all[i].flags & kWithImmediate, i % 2 == 0 ? 0 : kWithImmediate);
    assert_true(pair.arrived(i * kLength, length));
  }
  assert_int_equal(pair.a.qp->counters().retransmitted_packets, 0);
}

// The peer does nothing else while it fetches the bytes of one packet.
void send__longer_than_one_reference__several_packets(void**) {
  constexpr uint32_t kMib = 1024 * 1024, kLong = 2 * kMib + 3 * kMtu + 5;
  std::vector<std::byte> bytes(kLong);
  for (size_t i = 0; i < kLong; i++) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const uint32_t reached : {UINT32_MAX, 0u, 1u, 2u}) {
    Referring pair;
    pair.a.bytes = bytes;
    pair.b.bytes.assign(kLong, std::byte{0});
    pair.a.lends = reached;
    pair.b.post_receive(kLong, 0);
    pair.send(kLong);
    pair.a.qp->transmit(pair.now, pair.a);
    assert_int_equal(pair.references(), 3);
    pair.run();
    pair.expect(0, CompletionStatus::kSuccess, kLong);
    assert_true(pair.arrived(0, kLong));
  }
}

void fetch_fails__bytes_come_once_by_packets_and_from_then_on(void**) {
  Referring pair;
  pair.a.lends = 1;
  for (size_t i = 0; i < 4; i++) {
    pair.b.post_receive(kLength, i * kLength);
    pair.send();
  }
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.references(), 4);
  pair.run();
  for (size_t i = 0; i < 4; i++) {
    pair.expect(i, CompletionStatus::kSuccess);
    assert_true(pair.arrived(i * kLength, kLength));
  }
  pair.a.lends = UINT32_MAX;
  pair.b.post_receive(kLength, 0);
  pair.send();
  pair.a.qp->transmit(pair.now, pair.a);
  assert_true(pair.packets() > 1);
}

// To send the bytes after a failed fetch is not a retry: a connection without retries goes on.
void fetch_fails__no_retries_are_left__succeeds(void**) {
  Referring pair;
  QpAttributes attributes = pair.a.qp->attributes();
  attributes.state = QpState::kReset;
  assert_true(pair.a.qp->modify(attributes, kState));
  attributes.retry_count = 0;
  assert_true(pair.a.move(attributes, QpState::kInit) && pair.a.move(attributes, QpState::kRtr) &&
              pair.a.move(attributes, QpState::kRts));
  pair.a.lends = 0;
  pair.b.post_receive(kLength, kPlace);
  pair.send();
  pair.run();
  pair.expect(0, CompletionStatus::kSuccess);
  assert_true(pair.arrived(kPlace, kLength));
}

void reference_is_lost__packets_bring_the_bytes(void**) {
  Referring pair;
  pair.b.post_receive(kLength, kPlace);
  pair.send();
  pair.a.qp->transmit(pair.now, pair.a);
  pair.a.link.clear();
  pair.sleep();
  pair.a.qp->transmit(pair.now, pair.a);
  assert_true(pair.packets() > 1);
  pair.run();
  pair.expect(0, CompletionStatus::kSuccess);
  assert_true(pair.arrived(kPlace, kLength));
}

void acknowledgement_is_lost__message_arrives_once(void**) {
  Referring pair;
  pair.b.post_receive(kLength, kPlace);
  pair.b.post_receive(kLength, 0);
  pair.send();
  pair.a.qp->transmit(pair.now, pair.a);
  pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  pair.b.link.clear();
  pair.sleep();
  pair.run();
  pair.expect(0, CompletionStatus::kSuccess);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
}

void no_receive__waits_and_comes_by_packets(void**) {
  Referring pair;
  pair.send();
  pair.run();
  assert_true(pair.a.sent.empty());
  pair.b.post_receive(kLength, kPlace);
  pair.sleep();
  pair.run();
  pair.expect(0, CompletionStatus::kSuccess);
  assert_true(pair.arrived(kPlace, kLength));
}

void receive__too_short__the_same_errors_as_by_packets(void**) {
  for (const bool refers : {true, false}) {
    Referring pair;
    pair.a.refers = refers;
    pair.b.post_receive(kLength - 1, kPlace);
    pair.send();
    pair.run();
    assert_int_equal(pair.a.sent.at(0).status, CompletionStatus::kRemoteInvalidRequest);
    assert_int_equal(pair.b.receive_completions.all.at(0).status, CompletionStatus::kLocalLength);
  }
}

void receive__key_is_gone__the_same_errors_as_by_packets(void**) {
  for (const bool refers : {true, false}) {
    Referring pair;
    pair.a.refers = refers;
    pair.b.post_receive(kLength, kPlace);
    pair.send();
    pair.b.revoked = true;
    pair.run();
    assert_int_equal(pair.a.sent.at(0).status, CompletionStatus::kRemoteOperation);
    assert_int_equal(pair.b.receive_completions.all.at(0).status, CompletionStatus::kLocalProtection);
  }
}

// The host learns of the failure before the program does.
void sender__fails__lends_nothing_any_more(void**) {
  Referring pair;
  pair.b.post_receive(kLength, kPlace);
  pair.send();
  pair.a.qp->transmit(pair.now, pair.a);
  QpAttributes attributes;
  attributes.state = QpState::kError;
  assert_true(pair.a.qp->modify(attributes, kState));
  assert_int_equal(pair.a.lends, 0);
  pair.deliver(pair.a, pair.b);
  assert_true(pair.b.receive_completions.all.empty());
}

void loan__does_not_fit_its_packet__refused(void**) {
  struct Case {
    Operation operation;
    uint64_t length;
    uint32_t packets;
  };
  for (const Case& wrong : {Case{Operation::kSendOnly, 3 * kMtu, 2}, Case{Operation::kSendOnly, 3 * kMtu, 4},
                            Case{Operation::kSendOnly, 0, 1}, Case{Operation::kSendFirst, 3 * kMtu - 1, 3},
                            Case{Operation::kWriteOnly, 3 * kMtu, 3}, Case{Operation::kSendLast, 3 * kMtu, 3}}) {
    Referring pair;
    pair.b.post_receive(kLength, kPlace);
    Headers headers;
    headers.opcode = opcode_of(Transport::kRc, wrong.operation);
    headers.psn = kFirstPsn;
    headers.reth = {kBase, kKey, static_cast<uint32_t>(wrong.length)};
    const Bytes bytes = transport_of(headers, {});
    Packet packet = Pair::parsed(bytes);
    const Endpoint::Lent loan(pair.a, kBase, wrong.length, wrong.packets);
    packet.loan = &loan;
    pair.b.qp->receive(pair.now, packet);
    assert_int_equal(pair.b.qp->state(), QpState::kError);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(send__long__one_packet),
      cmocka_unit_test(send__of_one_packet_or_inline__carries_its_bytes),
      cmocka_unit_test(write__long__carries_its_bytes),
      cmocka_unit_test(send__many__not_bound_by_the_window_and_in_order),
      cmocka_unit_test(send__longer_than_one_reference__several_packets),
      cmocka_unit_test(fetch_fails__bytes_come_once_by_packets_and_from_then_on),
      cmocka_unit_test(fetch_fails__no_retries_are_left__succeeds),
      cmocka_unit_test(reference_is_lost__packets_bring_the_bytes),
      cmocka_unit_test(acknowledgement_is_lost__message_arrives_once),
      cmocka_unit_test(no_receive__waits_and_comes_by_packets),
      cmocka_unit_test(receive__too_short__the_same_errors_as_by_packets),
      cmocka_unit_test(receive__key_is_gone__the_same_errors_as_by_packets),
      cmocka_unit_test(sender__fails__lends_nothing_any_more),
      cmocka_unit_test(loan__does_not_fit_its_packet__refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
