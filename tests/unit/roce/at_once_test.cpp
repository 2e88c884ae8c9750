// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Plain Sends that are posted and sent, or received, in one step: the conditions, and that nothing happens without
// them. Acknowledgements that go along with another packet, or later.
#include <initializer_list>

#include "roce/core/syndrome.hpp"
#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

constexpr uint64_t kPlace = 40000;
constexpr uint32_t kDepth = 16;  // of an endpoint's send queue
constexpr uint32_t kLaterMessages = 16;

PlainSend plain(const SendRequest& request) {
  return {.id = request.id, .flags = request.flags, .segments = request.segments};
}

struct AtOnce : Pair {
  explicit AtOnce(bool may_lose_packets = false) : Pair(QpType::kRc, may_lose_packets, 14) {
    a.takes_along = b.takes_along = true;
  }

  bool send(Endpoint& from, uint32_t length = 8, uint8_t flags = kSignaled) {
    SendRequest request = from.request(SendOpcode::kSend, length);
    request.flags = flags;
    return from.send_at_once(now, plain(request));
  }
  bool send(uint32_t length = 8, uint8_t flags = kSignaled) { return send(a, length, flags); }
  // Nothing was sent or posted.
  void expect_nothing(const Endpoint& from, uint64_t outstanding = 0, size_t packets = 0) {
    assert_int_equal(from.qp->outstanding_sends(), outstanding);
    assert_int_equal(from.link.size(), packets);
  }
  void expect_refused(uint32_t length = 8, uint8_t flags = kSignaled) {
    assert_false(send(length, flags));
    expect_nothing(a);
  }
  bool deliver_at_once(Endpoint& from, Endpoint& to) {
    const Bytes bytes = from.link.front();
    PlainPacket packet;
    if (!parse_plain(bytes, bytes, packet)) return false;
    const auto along = from.along.find(packet.psn);
    if (along != from.along.end()) packet.acknowledgement = &along->second;
    if (!to.receive_at_once(now, packet)) return false;
    from.link.pop_front();
    return true;
  }
  bool arrived(uint32_t length) { return memcmp(a.at(kBase), b.at(kBase + kPlace), length) == 0; }
};

void send__one_packet__posted_and_sent(void**) {
  AtOnce pair;
  for (const uint32_t length : {1U, 8U, 255U, kMtu}) {
    pair.b.post_receive(kMtu, kPlace);
    assert_true(pair.send(length));
    assert_int_equal(pair.a.link.size(), 1);
    pair.run();
    assert_true(pair.arrived(length));
    assert_int_equal(pair.b.receive_completions.all.back().byte_count, length);
    assert_int_equal(pair.a.sent.back().status, CompletionStatus::kSuccess);
    assert_int_equal(pair.a.sent.back().request_id, pair.a.last_id);
  }
  assert_int_equal(pair.a.qp->outstanding_sends(), 0);
}

void send__empty__sent(void**) {
  AtOnce pair;
  pair.b.post_receive(8, kPlace);
  assert_true(pair.send(0));
  pair.run();
  assert_int_equal(pair.b.receive_completions.all.back().byte_count, 0);
}

void send__inline__the_bytes_of_the_post(void**) {
  AtOnce pair;
  std::byte here[24];
  memset(here, 0x42, sizeof here);
  const Segment segment = {reinterpret_cast<uintptr_t>(here), sizeof here, 0};
  pair.b.post_receive(kMtu, kPlace);
  assert_true(pair.a.send_at_once(pair.now, {.id = 1, .flags = kSignaled | kInline, .segments = {&segment, 1}}));
  memset(here, 0, sizeof here);
  pair.a.link.clear();  // The packet is lost, and sent again.
  pair.sleep();
  pair.run();
  memset(here, 0x42, sizeof here);
  assert_memory_equal(pair.b.at(kBase + kPlace), here, sizeof here);
}

void send__solicited__flag_arrives(void**) {
  AtOnce pair;
  for (int i = 0; i < 2; i++) pair.b.post_receive(8, kPlace);
  assert_true(pair.send(8, kSignaled | kSolicited));
  assert_true(pair.send(8));
  pair.run();
  assert_true(pair.b.receive_completions.all[0].solicited);
  assert_false(pair.b.receive_completions.all[1].solicited);
}

void send__state__refused(void**) {
  AtOnce pair;
  QpAttributes attributes = pair.a.qp->attributes();
  attributes.state = QpState::kSqd;
  assert_true(pair.a.qp->modify(attributes, kState));
  pair.expect_refused();
  attributes.state = QpState::kError;
  assert_true(pair.a.qp->modify(attributes, kState));
  pair.expect_refused();
  attributes.state = QpState::kReset;
  assert_true(pair.a.qp->modify(attributes, kState));
  pair.expect_refused();
}

void send__not_valid__refused(void**) {
  AtOnce pair;
  pair.expect_refused(kMtu + 1);
  pair.expect_refused(65, kInline);
  pair.a.revoked = true;
  pair.expect_refused();
  pair.a.revoked = false;
  const Segment segments[5] = {};
  assert_false(pair.a.send_at_once(pair.now, {.segments = segments}));
  pair.expect_nothing(pair.a);
  pair.a.link_room = 0;
  pair.expect_refused();
}

void send__full_queue__refused(void**) {
  AtOnce pair;
  for (uint32_t i = 0; i < kDepth; i++) assert_true(pair.send());
  assert_false(pair.send());
  pair.expect_nothing(pair.a, kDepth, kDepth);
}

void send__behind_a_request_that_waits__refused(void**) {
  AtOnce pair;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kWrite, 8)), PostError::kNone);
  assert_false(pair.send());
  pair.expect_nothing(pair.a, 1);
}

void send__behind_a_refusal_of_the_peer__waits_for_the_timer(void**) {
  AtOnce pair;
  assert_true(pair.send());
  pair.run();  // without a receive
  assert_false(pair.send());
  pair.expect_nothing(pair.a, 1);
}

void send__window__only_if_packets_may_be_lost(void**) {
  AtOnce safe, lossy(true);
  lossy.a.takes_along = false;
  for (uint32_t i = 0; i < kDepth; i++) assert_true(safe.send());
  // Without an acknowledgement the window never grows; a time-out makes it small.
  assert_true(lossy.send());
  lossy.a.link.clear();
  lossy.sleep();
  lossy.a.qp->transmit(lossy.now, lossy.a);
  uint32_t sent = 1;
  while (lossy.send()) sent++;
  assert_true(sent < kDepth);
}

// Otherwise its timer would end while the peer takes it.
void long_message__asks_in_parts(void**) {
  AtOnce pair;
  constexpr uint32_t kPackets = 200, kPart = 60;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kWrite, kPackets * kMtu)), PostError::kNone);
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_int_equal(pair.a.link.size(), kPackets);
  for (uint32_t i = 1; i <= kPackets; i++)
    assert_int_equal(Pair::parsed(pair.a.link[i - 1]).headers.ack_request, i % kPart == 0 || i == kPackets);
}

// The responses may come on a wire that loses packets.
void reads__window(void**) {
  AtOnce pair;
  constexpr uint32_t kChunk = 32 * 1024;
  assert_true(pair.send());
  for (int i = 0; i < 2; i++)
    assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kRead, kChunk)), PostError::kNone);
  assert_false(pair.a.qp->transmit(pair.now, pair.a));
  assert_int_equal(pair.a.link.size(), 2);
}

void send__lost__sent_again(void**) {
  AtOnce pair(true);
  pair.a.takes_along = pair.b.takes_along = false;
  pair.b.post_receive(kMtu, kPlace);
  assert_true(pair.send(100));
  pair.a.link.clear();
  pair.sleep();
  pair.run();
  assert_true(pair.arrived(100));
  assert_int_equal(pair.a.qp->counters().retransmitted_packets, 1);
  assert_int_equal(pair.a.sent.size(), 1);
}

// --- Acknowledgements

void acknowledgement__goes_along(void**) {
  AtOnce pair;
  pair.b.post_receive(8, kPlace);
  pair.a.post_receive(8, kPlace);
  assert_true(pair.send());
  pair.deliver(pair.a, pair.b);
  assert_int_equal(pair.b.qp->owes(), Owes::kAcknowledgement);
  assert_true(pair.send(pair.b));
  assert_int_equal(pair.b.link.size(), 1);
  assert_int_equal(pair.b.qp->owes(), Owes::kNothing);
  pair.deliver(pair.b, pair.a);
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.receive_completions.all.size(), 1);
}

void acknowledgement__goes_along_to_a_receive_at_once(void**) {
  AtOnce pair;
  pair.b.post_receive(8, kPlace);
  pair.a.post_receive(8, kPlace);
  assert_true(pair.send());
  assert_true(pair.deliver_at_once(pair.a, pair.b));
  assert_true(pair.send(pair.b));
  assert_true(pair.deliver_at_once(pair.b, pair.a));
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.receive_completions.all.size(), 1);
}

void acknowledgement__cannot_go_along__send_refused(void**) {
  AtOnce pair;
  pair.b.takes_along = false;
  pair.b.post_receive(8, kPlace);
  assert_true(pair.send());
  pair.deliver(pair.a, pair.b);
  assert_false(pair.send(pair.b));
  pair.expect_nothing(pair.b);
  assert_int_equal(pair.b.qp->owes(), Owes::kAcknowledgement);
}

void acknowledgement__send_refused__still_owed(void**) {
  AtOnce pair;
  pair.b.post_receive(8, kPlace);
  assert_true(pair.send());
  pair.deliver(pair.a, pair.b);
  pair.b.link_room = 0;
  assert_false(pair.send(pair.b));
  assert_int_equal(pair.b.qp->owes(), Owes::kAcknowledgement);
}

void acknowledgement__of_nothing_sent__ignored(void**) {
  AtOnce pair;
  pair.a.post_receive(8, kPlace);
  assert_true(pair.send(pair.b));
  pair.b.along[kFirstPsn] = {.psn = 0xFF000005, .syndrome = 0xFFFFFF60};
  pair.deliver(pair.b, pair.a);
  assert_int_equal(pair.a.qp->state(), QpState::kRts);
  assert_int_equal(pair.a.receive_completions.all.size(), 1);
}

// A peer that reports an error with a packet ends the connection, and the packet is void.
void acknowledgement__an_error_goes_along__packet_dropped(void**) {
  constexpr uint32_t kRemoteAccessError = 0x62;
  for (const bool at_once : {false, true}) {
    AtOnce pair;
    pair.a.post_receive(8, kPlace);
    assert_true(pair.send());
    assert_true(pair.send(pair.b));
    pair.b.along[kFirstPsn] = {.psn = kFirstPsn, .syndrome = kRemoteAccessError};
    if (at_once) {
      assert_true(pair.deliver_at_once(pair.b, pair.a));
    } else {
      pair.deliver(pair.b, pair.a);
    }
    assert_int_equal(pair.a.qp->state(), QpState::kError);
    assert_int_equal(pair.a.sent[0].status, CompletionStatus::kRemoteAccess);
    assert_int_equal(pair.a.receive_completions.all[0].status, CompletionStatus::kFlushed);
  }
}

void acknowledgement__unsignaled__later(void**) {
  AtOnce pair;
  for (uint32_t i = 0; i < kLaterMessages; i++) pair.b.post_receive(8, kPlace);
  for (uint32_t i = 1; i < kLaterMessages; i++) {
    // The queue of the sender is never half full.
    if (i % 4 == 0) pair.b.qp->transmit(pair.now, pair.b);
    while (!pair.b.link.empty()) pair.deliver(pair.b, pair.a);
    assert_true(pair.send(8, 0));
    assert_true(pair.deliver_at_once(pair.a, pair.b));
    assert_int_equal(pair.b.qp->owes(), Owes::kLaterAcknowledgement);
  }
  assert_true(pair.send(8, kSignaled));
  assert_true(pair.deliver_at_once(pair.a, pair.b));
  assert_int_equal(pair.b.qp->owes(), Owes::kAcknowledgement);
}

void acknowledgement__of_many_messages__due(void**) {
  AtOnce pair;
  Headers headers;
  headers.opcode = opcode_of(Transport::kRc, Operation::kSendOnly);
  headers.psn = kFirstPsn;
  for (uint32_t i = 1; i <= kLaterMessages; i++) {
    pair.b.post_receive(8, kPlace);
    pair.inject(pair.b, headers);
    headers.psn = psn_add(headers.psn, 1);
    assert_int_equal(pair.b.qp->owes(), i < kLaterMessages ? Owes::kLaterAcknowledgement : Owes::kAcknowledgement);
  }
}

void acknowledgement__unsignaled__asked_for_when_the_queue_is_half_full(void**) {
  AtOnce pair;
  for (uint32_t i = 0; i < kDepth; i++) assert_true(pair.send(8, 0));
  for (uint32_t i = 0; i < kDepth; i++)
    assert_int_equal(Pair::parsed(pair.a.link[i]).headers.ack_request, 2 * (i + 1) >= kDepth);
}

void acknowledgement__short_timer__always_asked_for(void**) {
  Pair pair(QpType::kRc, false, 12);
  const SendRequest request = pair.a.request(SendOpcode::kSend, 8);
  assert_true(pair.a.send_at_once(pair.now, {.id = 1, .segments = request.segments}));
  assert_true(Pair::parsed(pair.a.link[0]).headers.ack_request);
}

// Requests without a completion end together, and the others each with its own.
void acknowledgement__of_some_requests__ends_those_up_to_it(void**) {
  constexpr uint32_t kRequests = 14;
  AtOnce pair;
  for (uint32_t i = 0; i < kRequests; i++) assert_true(pair.send(8, i == 5 || i == 6 ? kSignaled : 0));
  Headers headers;
  headers.opcode = opcode_of(Transport::kRc, Operation::kAcknowledge);
  headers.aeth.syndrome = kAckSyndrome;
  for (const uint32_t ended : {3U, 5U, 6U, 9U, kRequests}) {
    headers.psn = psn_add(kFirstPsn, ended - 1);
    pair.inject(pair.a, headers);
    assert_int_equal(pair.a.qp->outstanding_sends(), kRequests - ended);
    assert_int_equal(pair.a.sent.size(), (ended > 5 ? 1 : 0) + (ended > 6 ? 1 : 0));
  }
}

// The retry finds the memory gone. A request that fails has a completion in any case.
void acknowledgement__retry_of_a_request_without_completion_fails__its_error(void**) {
  AtOnce pair;
  for (int i = 0; i < 3; i++) assert_true(pair.send(8, 0));
  Headers headers;
  headers.opcode = opcode_of(Transport::kRc, Operation::kAcknowledge);
  headers.aeth.syndrome = nak_syndrome(NakCode::kSequence);
  headers.psn = psn_add(kFirstPsn, 1);
  pair.inject(pair.a, headers);
  assert_int_equal(pair.a.qp->outstanding_sends(), 2);
  pair.a.revoked = true;
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.a.qp->state(), QpState::kError);
  assert_int_equal(pair.a.sent.size(), 2);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kLocalProtection);
  assert_int_equal(pair.a.sent[1].status, CompletionStatus::kFlushed);
}

// --- Receiving

void receive__next_packet__executed(void**) {
  AtOnce pair;
  pair.b.post_receive(100, kPlace);
  assert_true(pair.send(100));
  assert_true(pair.deliver_at_once(pair.a, pair.b));
  assert_true(pair.arrived(100));
  const Completion& completion = pair.b.receive_completions.all.at(0);
  assert_int_equal(completion.status, CompletionStatus::kSuccess);
  assert_int_equal(completion.opcode, CompletionOpcode::kReceive);
  assert_int_equal(completion.byte_count, 100);
  assert_int_equal(completion.source_qpn, 0x11);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 1);
}

// receive() gives each of these its result.
void receive__other_packets__left(void**) {
  AtOnce pair;
  assert_true(pair.send());
  assert_false(pair.deliver_at_once(pair.a, pair.b));  // no receive
  pair.b.post_receive(4, kPlace);
  assert_false(pair.deliver_at_once(pair.a, pair.b));  // too long
  pair.deliver(pair.a, pair.b);
  assert_int_equal(pair.b.receive_completions.all.at(0).status, CompletionStatus::kLocalLength);
}

void receive__no_access_to_the_receive__left(void**) {
  AtOnce pair;
  pair.b.post_receive(8, kPlace);
  pair.b.revoked = true;
  assert_true(pair.send());
  assert_false(pair.deliver_at_once(pair.a, pair.b));
  pair.deliver(pair.a, pair.b);
  assert_int_equal(pair.b.receive_completions.all.at(0).status, CompletionStatus::kLocalProtection);
}

void receive__another_psn__left(void**) {
  AtOnce pair;
  for (int i = 0; i < 2; i++) pair.b.post_receive(8, kPlace);
  assert_true(pair.send());
  assert_true(pair.send());
  const Bytes first = pair.a.link.front();
  pair.a.link.pop_front();
  assert_false(pair.deliver_at_once(pair.a, pair.b));  // a gap
  pair.a.link.push_front(first);
  assert_true(pair.deliver_at_once(pair.a, pair.b));
  pair.a.link.push_front(first);
  assert_false(pair.deliver_at_once(pair.a, pair.b));  // a duplicate
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
}

void receive__within_a_message__left(void**) {
  AtOnce pair;
  pair.b.post_receive(4 * kMtu, kPlace);
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kSend, 2 * kMtu)), PostError::kNone);
  pair.a.qp->transmit(pair.now, pair.a);
  pair.deliver(pair.a, pair.b);
  Headers headers;
  headers.opcode = opcode_of(Transport::kRc, Operation::kSendOnly);
  headers.psn = psn_add(kFirstPsn, 1);
  pair.a.link.push_front(transport_of(headers, {}));
  assert_false(pair.deliver_at_once(pair.a, pair.b));
}

void receive__first_packet_in_rtr__left_for_its_event(void**) {
  AtOnce pair;
  Endpoint b(QpType::kRc, 0x22);
  b.set_type(QpType::kRc);
  QpAttributes attributes = pair.b.qp->attributes();
  attributes.receive_psn = kFirstPsn;
  assert_true(b.move(attributes, QpState::kInit) && b.move(attributes, QpState::kRtr));
  for (int i = 0; i < 2; i++) b.post_receive(8, kPlace);
  for (int i = 0; i < 2; i++) assert_true(pair.send());
  assert_false(pair.deliver_at_once(pair.a, b));
  pair.deliver(pair.a, b);
  assert_int_equal(b.raised.at(0), QpEvent::kEstablished);
  assert_true(pair.deliver_at_once(pair.a, b));
  assert_int_equal(b.receive_completions.all.size(), 2);
}

void receive__in_error__left(void**) {
  AtOnce pair;
  assert_true(pair.send());
  QpAttributes attributes;
  attributes.state = QpState::kError;
  assert_true(pair.b.qp->modify(attributes, kState));
  assert_false(pair.deliver_at_once(pair.a, pair.b));
}

// --- Parsing

Bytes plain_bytes(size_t payload = 8) {
  Headers headers;
  headers.opcode = opcode_of(Transport::kRc, Operation::kSendOnly);
  headers.destination_qpn = 0x123456;
  headers.psn = 0xABCDEF;
  headers.ack_request = true;
  headers.solicited = true;
  headers.pad = pad_of(payload);
  const Bytes filling(payload, std::byte{7});
  return transport_of(headers, filling);
}

void parse__plain_packet__its_fields(void**) {
  for (const size_t size : {0U, 1U, 2U, 3U, 4U, 100U}) {
    const Bytes bytes = plain_bytes(size);
    PlainPacket packet;
    assert_true(parse_plain(bytes, bytes, packet));
    assert_int_equal(packet.destination_qpn, 0x123456);
    assert_int_equal(packet.psn, 0xABCDEF);
    assert_true(packet.ack_request && packet.solicited);
    assert_int_equal(packet.payload.size(), size);
    assert_ptr_equal(packet.payload.data(), bytes.data() + kBthSize);
  }
}

void parse__other_packets__refused(void**) {
  const auto refused = [](size_t place, uint8_t value) {
    Bytes bytes = plain_bytes();
    bytes[place] = std::byte{value};
    PlainPacket packet;
    return !parse_plain(bytes, bytes, packet);
  };
  assert_true(refused(0, opcode_of(Transport::kRc, Operation::kSendOnlyImmediate)));
  assert_true(refused(0, opcode_of(Transport::kUc, Operation::kSendOnly)));
  assert_true(refused(1, 0x41));  // the version
  assert_true(refused(2, 0x7F));  // the P_Key
  assert_true(refused(3, 0xFE));
  assert_false(refused(1, 0x00));
  PlainPacket packet;
  Bytes bytes = plain_bytes(0);
  for (size_t size = 0; size < kBthSize; size++) assert_false(parse_plain(bytes, std::span(bytes).first(size), packet));
  bytes[1] = std::byte{0x30};  // more pad than payload
  assert_false(parse_plain(bytes, bytes, packet));
  bytes.resize(kBthSize + 3);
  assert_false(parse_plain(bytes, bytes, packet));
}

// --- The timer

void timer__acknowledged__starts_again_at_the_deadline(void**) {
  AtOnce pair;
  for (int i = 0; i < 2; i++) pair.b.post_receive(8, kPlace);
  assert_true(pair.send());
  assert_true(pair.send());
  const Time deadline = pair.a.qp->deadline();
  pair.now += 1000;
  pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  pair.deliver(pair.b, pair.a);
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.qp->deadline(), deadline);
  pair.a.link.clear();  // The second one is lost.
  pair.sleep();
  assert_int_equal(pair.a.qp->counters().timeouts, 0);
  assert_true(pair.a.qp->deadline() > pair.now);
  pair.sleep();
  assert_int_equal(pair.a.qp->counters().timeouts, 1);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 2);
  assert_int_equal(pair.a.qp->deadline(), kNever);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(send__one_packet__posted_and_sent),
      cmocka_unit_test(send__empty__sent),
      cmocka_unit_test(send__inline__the_bytes_of_the_post),
      cmocka_unit_test(send__solicited__flag_arrives),
      cmocka_unit_test(send__state__refused),
      cmocka_unit_test(send__not_valid__refused),
      cmocka_unit_test(send__full_queue__refused),
      cmocka_unit_test(send__behind_a_request_that_waits__refused),
      cmocka_unit_test(send__behind_a_refusal_of_the_peer__waits_for_the_timer),
      cmocka_unit_test(send__window__only_if_packets_may_be_lost),
      cmocka_unit_test(long_message__asks_in_parts),
      cmocka_unit_test(reads__window),
      cmocka_unit_test(send__lost__sent_again),
      cmocka_unit_test(acknowledgement__goes_along),
      cmocka_unit_test(acknowledgement__goes_along_to_a_receive_at_once),
      cmocka_unit_test(acknowledgement__cannot_go_along__send_refused),
      cmocka_unit_test(acknowledgement__send_refused__still_owed),
      cmocka_unit_test(acknowledgement__of_nothing_sent__ignored),
      cmocka_unit_test(acknowledgement__an_error_goes_along__packet_dropped),
      cmocka_unit_test(acknowledgement__unsignaled__later),
      cmocka_unit_test(acknowledgement__of_many_messages__due),
      cmocka_unit_test(acknowledgement__unsignaled__asked_for_when_the_queue_is_half_full),
      cmocka_unit_test(acknowledgement__short_timer__always_asked_for),
      cmocka_unit_test(acknowledgement__of_some_requests__ends_those_up_to_it),
      cmocka_unit_test(acknowledgement__retry_of_a_request_without_completion_fails__its_error),
      cmocka_unit_test(receive__next_packet__executed),
      cmocka_unit_test(receive__other_packets__left),
      cmocka_unit_test(receive__no_access_to_the_receive__left),
      cmocka_unit_test(receive__another_psn__left),
      cmocka_unit_test(receive__within_a_message__left),
      cmocka_unit_test(receive__first_packet_in_rtr__left_for_its_event),
      cmocka_unit_test(receive__in_error__left),
      cmocka_unit_test(parse__plain_packet__its_fields),
      cmocka_unit_test(parse__other_packets__refused),
      cmocka_unit_test(timer__acknowledged__starts_again_at_the_deadline),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
