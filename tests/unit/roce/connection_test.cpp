// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reliable connections, packet by packet: each operation, and each error between requester and responder.
#include <tuple>

#include "roce/syndrome.hpp"
#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

constexpr uint8_t kOpcode(Operation operation) {
  return opcode_of(Transport::kRc, operation);
}

void post(Endpoint& endpoint, const SendRequest& request) {
  assert_int_equal(endpoint.qp->post_send(request), PostError::kNone);
}

void assert_sent(const Endpoint& endpoint, size_t number, CompletionStatus status) {
  assert_true(endpoint.sent.size() > number);
  assert_int_equal(endpoint.sent[number].status, status);
}

Packet front_of(const Endpoint& endpoint) {
  assert_false(endpoint.link.empty());
  return Pair::parsed(endpoint.link.front());
}

// IBTA 9.7.3.2.1: the syndrome of the next acknowledgement.
uint8_t next_syndrome(Endpoint& endpoint, Time now) {
  endpoint.qp->transmit(now, endpoint);
  const Packet packet = front_of(endpoint);
  assert_int_equal(packet.info->operation, Operation::kAcknowledge);
  return packet.headers.aeth.syndrome;
}

Headers write_only(uint32_t psn, uint64_t address, uint32_t length) {
  Headers headers;
  headers.opcode = kOpcode(Operation::kWriteOnly);
  headers.destination_qpn = 0x22;
  headers.psn = psn;
  headers.ack_request = true;
  headers.reth = {address, kKey, length};
  return headers;
}

Headers read_request(uint32_t psn, const Reth& range) {
  Headers headers;
  headers.opcode = kOpcode(Operation::kReadRequest);
  headers.psn = psn;
  headers.reth = range;
  return headers;
}

// --- Each operation

void send__several_packets__bytes_and_completions(void**) {
  Pair pair;
  assert_true(pair.is_connected);
  pair.b.post_receive(2000, 4096);
  SendRequest request = pair.a.request(SendOpcode::kSendImmediate, 1001);
  request.immediate_or_rkey = 0xCAFE;
  post(pair.a, request);
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  const Completion& completion = pair.b.receive_completions.all[0];
  assert_int_equal(completion.byte_count, 1001);
  assert_int_equal(completion.immediate_or_rkey, 0xCAFE);
  assert_int_equal(completion.flags, kWithImmediate);
  assert_memory_equal(pair.b.at(kBase + 4096), pair.a.at(kBase), 1001);
}

void write__every_size_around_packets__bytes(void**) {
  for (const uint32_t length : {0U, 1U, 3U, 255U, 256U, 257U, 512U, 513U, 40000U}) {
    Pair pair;
    post(pair.a, pair.a.request(SendOpcode::kWrite, length));
    pair.run();
    assert_sent(pair.a, 0, CompletionStatus::kSuccess);
    assert_memory_equal(pair.b.at(kBase), pair.a.at(kBase), length);
    assert_true(pair.b.receive_completions.all.empty());
  }
}

void read__every_size_around_packets_and_chunks__bytes(void**) {
  for (const uint32_t length : {0U, 1U, 255U, 256U, 257U, 32767U, 32768U, 32769U, 100000U}) {
    Pair pair;
    post(pair.a, pair.a.request(SendOpcode::kRead, length));
    pair.run();
    assert_sent(pair.a, 0, CompletionStatus::kSuccess);
    assert_int_equal(pair.a.sent[0].opcode, CompletionOpcode::kRead);
    assert_memory_equal(pair.a.at(kBase), pair.b.at(kBase), length);
  }
}

void atomics__flush__atomic_write__results(void**) {
  Pair pair;
  const uint64_t start = 5;
  memcpy(pair.b.at(kBase), &start, 8);
  SendRequest add = pair.a.request(SendOpcode::kFetchAdd, 8, 64);
  add.compare_or_add = 3;
  post(pair.a, add);
  SendRequest swap = pair.a.request(SendOpcode::kCompareSwap, 8, 72);
  swap.compare_or_add = 8;
  swap.swap = 100;
  post(pair.a, swap);
  SendRequest store = pair.a.request(SendOpcode::kAtomicWrite, 0);
  store.atomic_write = 0x1122334455667788;
  store.remote_address = kBase + 8;
  post(pair.a, store);
  SendRequest flush = pair.a.request(SendOpcode::kFlush, 0);
  flush.flush_length = 16;
  flush.flush_type = 1;
  post(pair.a, flush);
  pair.run();
  for (size_t i = 0; i < 4; i++) assert_sent(pair.a, i, CompletionStatus::kSuccess);
  uint64_t values[2];
  memcpy(values, pair.a.at(kBase + 64), 16);
  assert_int_equal(values[0], 5);
  assert_int_equal(values[1], 8);
  memcpy(values, pair.b.at(kBase), 16);
  assert_int_equal(values[0], 100);
  assert_int_equal(values[1], 0x1122334455667788);
  assert_int_equal(pair.b.flushes, 1);
}

void write_with_immediate__send_with_invalidate__completions(void**) {
  Pair pair;
  pair.b.post_receive(0);
  pair.b.post_receive(64, 4096);
  SendRequest write = pair.a.request(SendOpcode::kWriteImmediate, 700);
  write.immediate_or_rkey = 9;
  post(pair.a, write);
  SendRequest send = pair.a.request(SendOpcode::kSendInvalidate, 10);
  send.immediate_or_rkey = 0xABCD;
  post(pair.a, send);
  pair.run();
  const auto& received = pair.b.receive_completions.all;
  assert_int_equal(received.size(), 2);
  assert_int_equal(received[0].opcode, CompletionOpcode::kReceiveWriteImmediate);
  assert_int_equal(received[0].byte_count, 700);
  assert_int_equal(received[1].flags, kWithInvalidate);
  assert_int_equal(pair.b.invalidated, 0xABCD);
}

// The result goes into the first eight bytes of the list.
void atomics__longer_lists__get_eight_bytes(void**) {
  Pair pair;
  const uint64_t start = 0x0102030405060708;
  memcpy(pair.b.at(kBase), &start, 8);
  // The rest of the segment is no memory of the endpoint.
  const uint64_t end = pair.a.bytes.size();
  post(pair.a, pair.a.request(SendOpcode::kFetchAdd, 9, end - 8));
  SendRequest swap = pair.a.request(SendOpcode::kCompareSwap, 4096, 1024);
  memset(pair.a.at(kBase + 1024), 0x55, 16);
  post(pair.a, swap);
  pair.run();
  for (size_t i = 0; i < 2; i++) {
    assert_sent(pair.a, i, CompletionStatus::kSuccess);
    assert_int_equal(pair.a.sent[i].byte_count, 8);
  }
  assert_memory_equal(pair.a.at(kBase + end - 8), &start, 8);
  assert_memory_equal(pair.a.at(kBase + 1024), &start, 8);
  assert_int_equal(std::to_integer<int>(*pair.a.at(kBase + 1024 + 8)), 0x55);
  for (const uint32_t length : {0, 7}) {
    assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kFetchAdd, length)), PostError::kSegments);
  }
}

// The limits of a device's identity. A device that refuses too long messages does so when they are posted; the requests
// of another one complete with an error in their turn, also if the sink would place their bytes.
void limits__of_the_device__are_kept(void**) {
  constexpr SendOpcode kOpcodes[] = {SendOpcode::kSend, SendOpcode::kWrite, SendOpcode::kRead};
  for (const QpType type : {QpType::kRc, QpType::kUc}) {
    for (const SendOpcode opcode : kOpcodes) {
      if (type == QpType::kUc && opcode == SendOpcode::kRead) continue;
      Pair refusing(type, true, 10, {.max_message = 4096});
      assert_int_equal(refusing.a.qp->post_send(refusing.a.request(opcode, 4097)), PostError::kLength);
      Pair pair(type, true, 10, {.max_message = 4096, .refuses_too_long = false});
      pair.b.post_receive(4096);
      post(pair.a, pair.a.request(opcode, 4096));
      pair.run();
      assert_sent(pair.a, 0, CompletionStatus::kSuccess);
      pair.a.places_into = &pair.b;
      pair.a.offered = 0;
      post(pair.a, pair.a.request(opcode, 4097));
      pair.run();
      assert_int_equal(pair.a.sent.size(), 2);
      assert_sent(pair.a, 1, CompletionStatus::kLocalLength);
      assert_int_equal(pair.a.offered, 0);
    }
  }
}

// The range of a Flush is not a message.
void limits__of_messages__do_not_concern_a_flush(void**) {
  Pair pair(QpType::kRc, true, 10, {.max_message = 4096, .refuses_too_long = false});
  SendRequest flush = pair.a.request(SendOpcode::kFlush, 0);
  flush.flush_length = 8192;
  post(pair.a, flush);
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
}

void operations__that_the_device_lacks__are_not_posted(void**) {
  Pair pair(QpType::kRc, true, 10, {.has_atomics = false, .has_flush = false});
  for (const SendOpcode opcode :
       {SendOpcode::kCompareSwap, SendOpcode::kFetchAdd, SendOpcode::kFlush, SendOpcode::kAtomicWrite})
    assert_int_equal(pair.a.qp->post_send(pair.a.request(opcode, 8)), PostError::kOpcode);
  post(pair.a, pair.a.request(SendOpcode::kRead, 8));
}

// IBTA 9.9.6.3, class J.
void send_with_invalidate__bad_key__receiver_fails_and_sends_no_nak(void**) {
  Pair pair;
  pair.b.post_receive(64);
  pair.b.post_receive(64);
  pair.b.post_receive(64);
  post(pair.a, pair.a.request(SendOpcode::kSend, 10));
  SendRequest send = pair.a.request(SendOpcode::kSendInvalidate, 10);
  send.immediate_or_rkey = kBadKey;
  post(pair.a, send);
  pair.run();
  const auto& received = pair.b.receive_completions.all;
  assert_int_equal(received.size(), 3);
  assert_int_equal(received[0].status, CompletionStatus::kSuccess);
  assert_int_equal(received[1].status, CompletionStatus::kRemoteInvalidRequest);
  assert_int_equal(received[2].status, CompletionStatus::kFlushed);
  assert_int_equal(pair.b.qp->state(), QpState::kError);
  // The request before it has been acknowledged. Nothing answers the bad one, so its retries end.
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
  assert_int_equal(pair.a.sent.size(), 1);
  while (pair.a.sent.size() == 1) pair.sleep();
  assert_sent(pair.a, 1, CompletionStatus::kRetryExceeded);
}

// A shared receive queue has a protection domain of its own.
void receives__domain_of_their_own__is_used_for_their_memory(void**) {
  for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kUd}) {
    QpConfig config;
    config.domain = 3;
    config.receive_domain = 4;
    Endpoint endpoint(type, 7, true, config);
    endpoint.set_type(type);
    assert_true(endpoint.connect(7));
    endpoint.post_receive(1000);
    SendRequest send = endpoint.request(SendOpcode::kSend, 10, 2000);
    send.remote_qpn = 7;
    send.remote_qkey = 0x1234;
    post(endpoint, send);
    endpoint.qp->transmit(Time{1}, endpoint);
    assert_int_equal(endpoint.accessor.domain, 3);
    const Bytes frame = endpoint.link.front();
    endpoint.qp->receive(Time{1}, Pair::parsed(frame));
    assert_int_equal(endpoint.receive_completions.all.size(), 1);
    assert_int_equal(endpoint.receive_completions.all[0].status, CompletionStatus::kSuccess);
    assert_int_equal(endpoint.accessor.domain, 4);
    assert_int_equal(endpoint.accessor.qpn, 7);
  }
}

void unsignaled__many_requests__only_signaled_ones_complete(void**) {
  Pair pair;
  for (int i = 0; i < 9; i++) {
    SendRequest request = pair.a.request(SendOpcode::kWrite, 8);
    if (i != 8) request.flags = 0;
    post(pair.a, request);
  }
  pair.run();
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.sent[0].request_id, 9);
}

// 2^31 bytes at an MTU of 256 are 2^23 packets: half of all PSNs.
void post__the_most_packets__wait_for_room(void**) {
  static_assert(kMtu == 256);
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kWrite, uint32_t{1} << 31));
  pair.a.link_room = 0;
  assert_true(pair.a.qp->transmit(pair.now, pair.a));
  assert_true(pair.a.sent.empty());
}

void post__full_queue__refused_until_completions(void**) {
  Pair pair;
  for (int i = 0; i < 16; i++) post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kWrite, 8)), PostError::kFull);
  assert_int_equal(pair.a.qp->check_send(pair.a.request(SendOpcode::kWrite, 8), 0), PostError::kFull);
  pair.run();
  assert_int_equal(pair.a.qp->check_send(pair.a.request(SendOpcode::kWrite, 8), 15), PostError::kNone);
  assert_int_equal(pair.a.qp->check_send(pair.a.request(SendOpcode::kWrite, 8), 16), PostError::kFull);
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kWrite, 8)), PostError::kNone);
}

void fence__after_read__waits_for_the_response(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  SendRequest write = pair.a.request(SendOpcode::kWrite, 8);
  write.flags |= kFence;
  post(pair.a, write);
  pair.transmit();
  assert_int_equal(pair.a.link.size(), 1);
  pair.run();
  assert_sent(pair.a, 1, CompletionStatus::kSuccess);
}

void max_rd_atomic__three_reads__two_at_a_time(void**) {
  Pair pair;
  for (int i = 0; i < 3; i++) post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  pair.transmit();
  assert_int_equal(pair.a.link.size(), 2);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 3);
}

// --- Losses

// Every packet of an exchange is lost once, one run each.
void loss__any_single_packet__everything_arrives_once(void**) {
  for (int lost = 0; lost < 40; lost++) {
    Pair pair;
    pair.b.post_receive(3000, 8192);
    post(pair.a, pair.a.request(SendOpcode::kSend, 1500));
    post(pair.a, pair.a.request(SendOpcode::kWrite, 600));
    SendRequest read = pair.a.request(SendOpcode::kRead, 1300, 16384);
    read.remote_address = kBase + 32768;
    post(pair.a, read);
    SendRequest add = pair.a.request(SendOpcode::kFetchAdd, 8, 65536);
    add.remote_address = kBase + 1024;
    post(pair.a, add);
    int number = 0;
    for (int rounds = 0; pair.a.sent.size() < 4; rounds++) {
      assert_true(rounds < 1000);
      pair.transmit();
      if (pair.a.link.empty() && pair.b.link.empty()) {
        pair.sleep();
        continue;
      }
      for (Endpoint* from : {&pair.a, &pair.b}) {
        if (from->link.empty()) continue;
        if (number++ == lost) {
          from->link.pop_front();
        } else {
          pair.deliver(*from, from == &pair.a ? pair.b : pair.a);
        }
      }
    }
    for (size_t i = 0; i < 4; i++) assert_sent(pair.a, i, CompletionStatus::kSuccess);
    assert_int_equal(pair.b.atomics, 1);
    assert_int_equal(pair.b.receive_completions.all.size(), 1);
    assert_memory_equal(pair.b.at(kBase + 8192), pair.a.at(kBase), 1500);
    assert_memory_equal(pair.a.at(kBase + 16384), pair.b.at(kBase + 32768), 1300);
  }
}

void gap__later_packet__one_sequence_nak(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kWrite, 4 * kMtu));
  pair.transmit();
  pair.a.link.pop_front();
  pair.deliver(pair.a, pair.b);
  assert_int_equal(next_syndrome(pair.b, pair.now), nak_syndrome(NakCode::kSequence));
  pair.b.link.clear();
  pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_true(pair.b.link.empty());
  assert_int_equal(pair.b.qp->counters().sequence_naks_sent, 1);
}

void silence__local_ack_timeout__retries_then_error(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  for (const Time wait : {kAckTime, 2 * kAckTime, 4 * kAckTime, 4 * kAckTime}) {
    pair.transmit();
    assert_int_equal(pair.a.link.size(), 2);
    pair.a.link.clear();
    assert_int_equal(pair.a.qp->deadline(), pair.now + wait);
    assert_true(pair.a.sent.empty());
    pair.sleep();
  }
  assert_sent(pair.a, 0, CompletionStatus::kRetryExceeded);
  assert_sent(pair.a, 1, CompletionStatus::kFlushed);
  assert_int_equal(pair.a.qp->state(), QpState::kError);
  assert_int_equal(pair.a.qp->deadline(), kNever);
}

class SlowWatch final : public Clock {
 public:
  Time exact() override { return time; }
  Time rough() override { return time - behind; }
  Time time = 1'000'000'000;
  Time behind = 0;
};

// A long timer starts by the rough clock. It is never early, and late by no more than a third.
void silence__rough_clock__timer_between_once_and_four_thirds(void**) {
  for (const Time behind : {Time{0}, kRoughError / 2, kRoughError}) {
    for (const uint8_t code : {uint8_t{12}, uint8_t{13}, uint8_t{18}}) {
      Pair pair;
      QpAttributes attributes;
      attributes.timeout = code;
      attributes.state = QpState::kSqd;
      assert_true(pair.a.qp->modify(attributes, kState));
      assert_true(pair.a.qp->modify(attributes, kTimeout));
      attributes.state = QpState::kRts;
      assert_true(pair.a.qp->modify(attributes, kState));
      post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
      SlowWatch watch;
      watch.behind = behind;
      pair.a.qp->transmit(watch, pair.a);
      const Time wait = ack_time(code);
      assert_in_range(pair.a.qp->deadline(), watch.time + wait, watch.time + wait + wait / 3);
    }
  }
}

void no_receive__rnr_nak__waits_and_succeeds(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kSend, 300));
  pair.run();
  assert_int_equal(pair.b.qp->counters().rnr_naks_sent, 1);
  assert_int_equal(pair.a.qp->deadline(), pair.now + rnr_time(12));
  pair.b.post_receive(300, 4096);
  pair.run();
  assert_true(pair.a.sent.empty());
  pair.sleep();
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
  assert_memory_equal(pair.b.at(kBase + 4096), pair.a.at(kBase), 300);
}

void no_receive__rnr_retries_used_up__error(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kSend, 300));
  for (int i = 0; i < 2; i++) {
    pair.run();
    assert_true(pair.a.sent.empty());
    pair.sleep();
  }
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kRnrRetryExceeded);
}

// The peer is not told that a message has arrived of which nobody learns.
void completion_queue_full__connection_ends(void**) {
  for (const bool at_once : {false, true}) {
    Pair pair;
    for (int i = 0; i < 4; i++) pair.b.post_receive(300, 4096);
    pair.b.receive_completions.room = 1;
    post(pair.a, pair.a.request(SendOpcode::kSend, 100));
    pair.run();
    assert_sent(pair.a, 0, CompletionStatus::kSuccess);
    if (at_once) {
      std::byte bytes[8] = {};
      const PlainPacket packet = {.psn = psn_add(kFirstPsn, 1), .ack_request = true, .payload = bytes};
      assert_true(pair.b.receive_at_once(Now(pair.now), packet));
    } else {
      post(pair.a, pair.a.request(SendOpcode::kSend, 100));
      pair.run();
      assert_int_equal(pair.a.sent.size(), 1);
    }
    assert_int_equal(pair.b.qp->state(), QpState::kError);
    assert_int_equal(pair.b.raised.size(), 1);
    assert_int_equal(pair.b.raised[0], QpEvent::kFatal);
    assert_int_equal(pair.b.receive_completions.all.size(), 1);
  }
}

// --- Strange packets

void rnr_nak__copies_of_one__cost_one_retry(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kSend, 300));
  pair.transmit();
  while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
  pair.transmit();
  const Bytes nak = pair.b.link.front();
  for (int i = 0; i < 3; i++) pair.b.link.push_back(nak);
  while (!pair.b.link.empty()) pair.deliver(pair.b, pair.a);
  assert_true(pair.a.sent.empty());
  pair.b.post_receive(300, 4096);
  pair.sleep();
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
}

void ghost_acknowledgement__not_sent_psn__ignored(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
  pair.transmit();
  Headers ghost;
  ghost.opcode = kOpcode(Operation::kAcknowledge);
  ghost.aeth = {kAckSyndrome, 0};
  for (const int32_t away : {-5, -1, 1, 2, 1000}) {
    ghost.psn = psn_add(kFirstPsn, static_cast<uint32_t>(away));
    pair.inject(pair.a, ghost);
    ghost.aeth.syndrome = nak_syndrome(NakCode::kRemoteAccess);
  }
  assert_true(pair.a.sent.empty());
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
}

void implied_nak__acknowledged_beyond_a_read__asks_again(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  post(pair.a, pair.a.request(SendOpcode::kWrite, 8, 1024));
  pair.transmit();
  pair.deliver(pair.a, pair.b);
  pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.link.size(), 2);
  pair.b.link.pop_front();  // the Read's response
  pair.deliver(pair.b, pair.a);
  assert_true(pair.a.sent.empty());
  pair.transmit();
  assert_int_equal(front_of(pair.a).info->operation, Operation::kReadRequest);
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
  assert_sent(pair.a, 1, CompletionStatus::kSuccess);
}

void bad_response__wrong_size__error(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  pair.transmit();
  Headers response;
  response.opcode = kOpcode(Operation::kReadResponseOnly);
  response.psn = kFirstPsn;
  response.aeth = {kAckSyndrome, 1};
  pair.inject(pair.a, response, Bytes(12));
  assert_sent(pair.a, 0, CompletionStatus::kBadResponse);
}

void duplicate__write_then_changed_then_again__not_executed_twice(void**) {
  Pair pair;
  const Bytes payload(8, std::byte{0xEE});
  pair.inject(pair.b, write_only(kFirstPsn, kBase, 8), payload);
  memset(pair.b.at(kBase), 0x55, 8);
  pair.inject(pair.b, write_only(kFirstPsn, kBase, 8), payload);
  assert_int_equal(next_syndrome(pair.b, pair.now), kAckSyndrome);
  assert_int_equal(static_cast<int>(*pair.b.at(kBase)), 0x55);
  assert_int_equal(pair.b.qp->counters().duplicates, 1);
}

void duplicate__atomic__answered_from_memory(void**) {
  Pair pair;
  Headers add;
  add.opcode = kOpcode(Operation::kFetchAdd);
  add.psn = kFirstPsn;
  add.atomic = {kBase, kKey, 1, 0};
  memset(pair.b.at(kBase), 0, 8);
  for (int i = 0; i < 3; i++) {
    pair.inject(pair.b, add);
    pair.b.qp->transmit(pair.now, pair.b);
    const Packet answer = front_of(pair.b);
    assert_int_equal(answer.info->operation, Operation::kAtomicAcknowledge);
    assert_int_equal(answer.headers.atomic_original, 0);
    pair.b.link.clear();
  }
  assert_int_equal(pair.b.atomics, 1);
}

// A copy of a Read may come late, when the requester has the response and the program has taken its memory back.
void duplicate__read_of_memory_that_is_gone__dropped(void**) {
  for (const bool answered : {true, false}) {
    Pair pair;
    const Headers read = read_request(kFirstPsn, {kBase, kKey, 4 * kMtu});
    pair.inject(pair.b, read);
    if (answered) pair.b.qp->transmit(pair.now, pair.b);
    pair.b.link.clear();
    pair.b.revoked = true;
    pair.inject(pair.b, read);
    pair.b.qp->transmit(pair.now, pair.b);
    assert_int_equal(pair.b.qp->state(), answered ? QpState::kRts : QpState::kError);
    assert_int_equal(pair.b.link.empty(), answered);
  }
}

void duplicate__read_of_another_range__dropped(void**) {
  Pair pair;
  pair.inject(pair.b, read_request(kFirstPsn, {kBase, kKey, 4 * kMtu}));
  pair.b.qp->transmit(pair.now, pair.b);
  pair.b.link.clear();
  // The rest of it, from the third packet on.
  const uint32_t third = psn_add(kFirstPsn, 2);
  pair.inject(pair.b, read_request(third, {kBase + 2 * kMtu, kKey, 2 * kMtu}));
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.link.size(), 2);
  pair.b.link.clear();
  for (const Reth& wrong :
       {Reth{kBase, kKey, 2 * kMtu}, Reth{kBase + 2 * kMtu, kKey, 3 * kMtu}, Reth{kBase + 2 * kMtu, kKey + 1, kMtu}}) {
    pair.inject(pair.b, read_request(third, wrong));
    pair.b.qp->transmit(pair.now, pair.b);
    assert_true(pair.b.link.empty());
  }
}

// --- Refusals: the responder's answer and the requester's result

struct Refusal {
  const char* name;
  Operation operation;
  uint64_t address;
  uint32_t length;
  uint32_t rkey;
  size_t payload;
  NakCode code;
};

void refusals__responder__nak_and_error(void**) {
  const uint64_t end = kBase + (1 << 17);
  const Refusal refusals[] = {
      {"middle without a first", Operation::kWriteMiddle, 0, 0, 0, kMtu, NakCode::kInvalidRequest},
      {"last without a first", Operation::kSendLast, 0, 0, 0, 8, NakCode::kInvalidRequest},
      {"first that is not full", Operation::kWriteFirst, kBase, 1000, kKey, 100, NakCode::kInvalidRequest},
      {"only that is longer than it says", Operation::kWriteOnly, kBase, 8, kKey, 16, NakCode::kInvalidRequest},
      {"first of a message that would fit", Operation::kWriteFirst, kBase, kMtu, kKey, kMtu, NakCode::kInvalidRequest},
      {"write with a wrong key", Operation::kWriteOnly, kBase, 8, kKey + 1, 8, NakCode::kRemoteAccess},
      {"write beyond the region", Operation::kWriteOnly, end - 4, 8, kKey, 8, NakCode::kRemoteAccess},
      {"write around the address space", Operation::kWriteOnly, UINT64_MAX - 3, 8, kKey, 8, NakCode::kRemoteAccess},
      {"read with a wrong key", Operation::kReadRequest, kBase, 8, kKey + 1, 0, NakCode::kRemoteAccess},
      {"read beyond the region", Operation::kReadRequest, kBase, 1 << 18, kKey, 0, NakCode::kRemoteAccess},
      {"read of more than a message holds", Operation::kReadRequest, kBase, 0x80000001, kKey, 0,
       NakCode::kInvalidRequest},
      {"atomic that is not aligned", Operation::kFetchAdd, kBase + 4, 8, kKey, 0, NakCode::kInvalidRequest},
      {"atomic with a wrong key", Operation::kCompareSwap, kBase, 8, kKey + 1, 0, NakCode::kRemoteAccess},
      {"flush to persistence that is not allowed", Operation::kFlush, kBase, 8, kKey, 0, NakCode::kInvalidRequest},
  };
  for (const Refusal& refusal : refusals) {
    Pair pair;
    Headers headers;
    headers.opcode = kOpcode(refusal.operation);
    headers.psn = kFirstPsn;
    headers.reth = {refusal.address, refusal.rkey, refusal.length};
    headers.atomic = {refusal.address, refusal.rkey, 1, 1};
    headers.flush = 2;
    pair.inject(pair.b, headers, Bytes(refusal.payload));
    const uint8_t syndrome = next_syndrome(pair.b, pair.now);
    if (syndrome != nak_syndrome(refusal.code)) fail_msg("%s: syndrome %#x", refusal.name, syndrome);
    assert_int_equal(pair.b.qp->state(), QpState::kError);
    assert_int_equal(pair.b.raised.size(), 1);
  }
}

// IBTA table 91: from SQD to SQD the number of Reads that the peer may have under way can change.
void modify__more_reads_for_the_peer__has_room_for_them(void**) {
  Pair pair;
  QpAttributes attributes;
  attributes.state = QpState::kSqd;
  assert_true(pair.b.qp->modify(attributes, kState));
  pair.inject(pair.b, read_request(kFirstPsn, {kBase, kKey, kMtu}));
  attributes.max_dest_rd_atomic = 5;
  assert_true(pair.b.qp->modify(attributes, kState | kMaxDestRdAtomic));
  for (uint32_t i = 1; i < 5; i++) {
    pair.inject(pair.b, read_request(psn_add(kFirstPsn, i), {kBase, kKey, kMtu}));
  }
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.link.size(), 5);
  assert_int_equal(pair.b.qp->state(), QpState::kSqd);
}

// The requests before it came in the same batch, and their answers have not been sent yet.
void refusal__behind_reads_and_atomics__they_are_answered_first(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kFetchAdd, 8));
  post(pair.a, pair.a.request(SendOpcode::kRead, 3 * kMtu, 4096));
  SendRequest wrong = pair.a.request(SendOpcode::kWrite, 8);
  wrong.rkey = kKey + 1;
  post(pair.a, wrong);
  pair.transmit();
  while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
  assert_sent(pair.a, 1, CompletionStatus::kSuccess);
  assert_sent(pair.a, 2, CompletionStatus::kRemoteAccess);
  assert_int_equal(pair.b.qp->owes(), Owes::kNothing);
}

// An explanation tells the length.
void refusal__inline_bytes__the_failed_request_has_its_length(void**) {
  Pair pair;
  const std::byte bytes[24] = {};
  const Segment segment = {reinterpret_cast<uintptr_t>(bytes), sizeof bytes, 0};
  SendRequest wrong = pair.a.request(SendOpcode::kWrite, 0);
  wrong.flags |= kInline;
  wrong.segments = {&segment, 1};
  wrong.rkey = kKey + 1;
  post(pair.a, wrong);
  pair.transmit();
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kRemoteAccess);
  assert_int_equal(pair.a.failed_length, sizeof bytes);
}

// As above, but the Read's memory is gone: its refusal is the only one.
void refusal__behind_a_read_of_memory_that_goes__the_read_is_refused(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kRead, 3 * kMtu, 4096));
  post(pair.a, pair.a.request(SendOpcode::kRead, kMtu, 8192));
  SendRequest wrong = pair.a.request(SendOpcode::kWrite, 8);
  wrong.rkey = kKey + 1;
  post(pair.a, wrong);
  pair.transmit();
  while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
  pair.b.revoked = true;
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.link.size(), 1);
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kRemoteAccess);
  assert_int_equal(pair.b.qp->owes(), Owes::kNothing);
}

void refusal__requester__error_and_flush(void**) {
  const std::pair<NakCode, CompletionStatus> learned[] = {
      {NakCode::kInvalidRequest, CompletionStatus::kRemoteInvalidRequest},
      {NakCode::kRemoteAccess, CompletionStatus::kRemoteAccess},
      {NakCode::kRemoteOperation, CompletionStatus::kRemoteOperation}};
  for (const auto& [code, status] : learned) {
    Pair pair;
    for (int i = 0; i < 3; i++) post(pair.a, pair.a.request(SendOpcode::kWrite, 8));
    pair.a.post_receive(8);
    pair.transmit();
    Headers nak;
    nak.opcode = kOpcode(Operation::kAcknowledge);
    nak.psn = psn_add(kFirstPsn, 1);
    nak.aeth = {nak_syndrome(code), 0};
    pair.inject(pair.a, nak);
    assert_sent(pair.a, 0, CompletionStatus::kSuccess);
    assert_sent(pair.a, 1, status);
    assert_sent(pair.a, 2, CompletionStatus::kFlushed);
    assert_int_equal(pair.a.receive_completions.all.size(), 1);
    assert_int_equal(pair.a.receive_completions.all[0].status, CompletionStatus::kFlushed);
  }
}

// The host learns which bytes and which rights the memory has denied.
void refusal__by_the_memory__the_host_learns_range_and_rights(void**) {
  const std::tuple<SendOpcode, uint32_t, uint32_t> needed[] = {{SendOpcode::kWrite, 16, kRemoteWrite},
                                                               {SendOpcode::kRead, 16, kRemoteRead},
                                                               {SendOpcode::kFetchAdd, 8, kRemoteAtomic},
                                                               {SendOpcode::kAtomicWrite, 8, kRemoteWrite},
                                                               {SendOpcode::kFlush, 24, kFlushGlobal}};
  for (const auto& [opcode, length, rights] : needed) {
    Pair pair;
    const bool has_bytes = opcode != SendOpcode::kFlush && opcode != SendOpcode::kAtomicWrite;
    SendRequest request = pair.a.request(opcode, has_bytes ? length : 0);
    request.rkey = kKey + 1;
    request.flush_length = length;
    request.flush_type = 1;
    post(pair.a, request);
    pair.run();
    assert_sent(pair.a, 0, CompletionStatus::kRemoteAccess);
    assert_int_equal(pair.b.denials.size(), 1);
    const auto& [range, denied] = pair.b.denials[0];
    assert_int_equal(denied, rights);
    assert_int_equal(range.rkey, kKey + 1);
    assert_int_equal(range.address, request.remote_address);
    assert_int_equal(range.length, length);
  }
}

// IBTA 9.7.4.1.5: the queue pair's own rights. The host learns which one was needed.
void refusal__right_that_the_queue_pair_lacks__both_ends_learn(void**) {
  const std::pair<SendOpcode, uint32_t> needed[] = {
      {SendOpcode::kWrite, kRemoteWrite}, {SendOpcode::kRead, kRemoteRead}, {SendOpcode::kFetchAdd, kRemoteAtomic}};
  for (const auto& [opcode, right] : needed) {
    Pair pair;
    QpAttributes attributes;
    attributes.access = (kRemoteWrite | kRemoteRead | kRemoteAtomic) & ~right;
    assert_true(pair.b.qp->modify(attributes, kAccessFlags));
    post(pair.a, pair.a.request(opcode, 8));
    pair.run();
    assert_sent(pair.a, 0, CompletionStatus::kRemoteInvalidRequest);
    assert_int_equal(pair.b.refused_rights.size(), 1);
    assert_int_equal(pair.b.refused_rights[0], right);
  }
}

void refusal__no_room_for_answers__both_ends_learn(void**) {
  Pair pair;
  QpAttributes attributes;
  attributes.state = QpState::kSqd;
  assert_true(pair.b.qp->modify(attributes, kState));
  attributes.max_dest_rd_atomic = 0;
  assert_true(pair.b.qp->modify(attributes, kState | kMaxDestRdAtomic));
  attributes.state = QpState::kRts;
  assert_true(pair.b.qp->modify(attributes, kState));
  post(pair.a, pair.a.request(SendOpcode::kRead, 8));
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kRemoteInvalidRequest);
  assert_int_equal(pair.b.refused_rights.size(), 1);
}

void send__longer_than_the_receive__both_ends_learn(void**) {
  Pair pair;
  pair.b.post_receive(300);
  post(pair.a, pair.a.request(SendOpcode::kSend, 400));
  pair.run();
  assert_int_equal(pair.b.receive_completions.all[0].status, CompletionStatus::kLocalLength);
  assert_sent(pair.a, 0, CompletionStatus::kRemoteInvalidRequest);
}

void memory__revoked_in_mid_transfer__both_ends_learn(void**) {
  Pair write;
  post(write.a, write.a.request(SendOpcode::kWrite, 1000));
  write.transmit();
  write.deliver(write.a, write.b);
  write.b.revoked = true;
  write.run();
  assert_sent(write.a, 0, CompletionStatus::kRemoteAccess);
  assert_int_equal(write.b.raised[0], QpEvent::kAccessError);

  Pair read;
  read.b.link_room = 2;
  post(read.a, read.a.request(SendOpcode::kRead, 1000));
  read.a.qp->transmit(read.now, read.a);
  read.deliver(read.a, read.b);
  read.b.qp->transmit(read.now, read.b);
  read.b.revoked = true;
  read.run();
  assert_sent(read.a, 0, CompletionStatus::kRemoteAccess);

  Pair local;
  local.a.revoked = true;
  post(local.a, local.a.request(SendOpcode::kWrite, 1000));
  local.run();
  assert_sent(local.a, 0, CompletionStatus::kLocalProtection);
}

// --- States

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

// --- The window

void window__losses__shrinks_and_recovers(void**) {
  Pair pair;
  post(pair.a, pair.a.request(SendOpcode::kWrite, 100000));
  pair.transmit();
  const size_t first = pair.a.link.size();
  assert_in_range(first, 16, 128);
  pair.a.link.clear();
  pair.sleep();
  pair.transmit();
  assert_in_range(pair.a.link.size(), 1, 4);
  pair.run();
  assert_sent(pair.a, 0, CompletionStatus::kSuccess);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(send__several_packets__bytes_and_completions),
      cmocka_unit_test(write__every_size_around_packets__bytes),
      cmocka_unit_test(read__every_size_around_packets_and_chunks__bytes),
      cmocka_unit_test(atomics__flush__atomic_write__results),
      cmocka_unit_test(write_with_immediate__send_with_invalidate__completions),
      cmocka_unit_test(atomics__longer_lists__get_eight_bytes),
      cmocka_unit_test(limits__of_the_device__are_kept),
      cmocka_unit_test(limits__of_messages__do_not_concern_a_flush),
      cmocka_unit_test(operations__that_the_device_lacks__are_not_posted),
      cmocka_unit_test(send_with_invalidate__bad_key__receiver_fails_and_sends_no_nak),
      cmocka_unit_test(receives__domain_of_their_own__is_used_for_their_memory),
      cmocka_unit_test(unsignaled__many_requests__only_signaled_ones_complete),
      cmocka_unit_test(post__the_most_packets__wait_for_room),
      cmocka_unit_test(post__full_queue__refused_until_completions),
      cmocka_unit_test(fence__after_read__waits_for_the_response),
      cmocka_unit_test(max_rd_atomic__three_reads__two_at_a_time),
      cmocka_unit_test(loss__any_single_packet__everything_arrives_once),
      cmocka_unit_test(gap__later_packet__one_sequence_nak),
      cmocka_unit_test(silence__local_ack_timeout__retries_then_error),
      cmocka_unit_test(silence__rough_clock__timer_between_once_and_four_thirds),
      cmocka_unit_test(no_receive__rnr_nak__waits_and_succeeds),
      cmocka_unit_test(no_receive__rnr_retries_used_up__error),
      cmocka_unit_test(completion_queue_full__connection_ends),
      cmocka_unit_test(rnr_nak__copies_of_one__cost_one_retry),
      cmocka_unit_test(ghost_acknowledgement__not_sent_psn__ignored),
      cmocka_unit_test(implied_nak__acknowledged_beyond_a_read__asks_again),
      cmocka_unit_test(bad_response__wrong_size__error),
      cmocka_unit_test(duplicate__write_then_changed_then_again__not_executed_twice),
      cmocka_unit_test(duplicate__atomic__answered_from_memory),
      cmocka_unit_test(duplicate__read_of_another_range__dropped),
      cmocka_unit_test(duplicate__read_of_memory_that_is_gone__dropped),
      cmocka_unit_test(refusals__responder__nak_and_error),
      cmocka_unit_test(modify__more_reads_for_the_peer__has_room_for_them),
      cmocka_unit_test(refusal__inline_bytes__the_failed_request_has_its_length),
      cmocka_unit_test(refusal__behind_reads_and_atomics__they_are_answered_first),
      cmocka_unit_test(refusal__behind_a_read_of_memory_that_goes__the_read_is_refused),
      cmocka_unit_test(refusal__requester__error_and_flush),
      cmocka_unit_test(refusal__by_the_memory__the_host_learns_range_and_rights),
      cmocka_unit_test(refusal__right_that_the_queue_pair_lacks__both_ends_learn),
      cmocka_unit_test(refusal__no_room_for_answers__both_ends_learn),
      cmocka_unit_test(send__longer_than_the_receive__both_ends_learn),
      cmocka_unit_test(memory__revoked_in_mid_transfer__both_ends_learn),
      cmocka_unit_test(sqd__requests_under_way__finished_then_drained),
      cmocka_unit_test(sqd__event_not_asked_for_again__does_not_come),
      cmocka_unit_test(attributes__psns__are_those_of_the_next_packets),
      cmocka_unit_test(sqd__no_more_reads_allowed__waiting_read_fails),
      cmocka_unit_test(sqd__more_reads_allowed__they_go_together),
      cmocka_unit_test(error__posts_afterwards__flushed_at_once),
      cmocka_unit_test(modify__missing_unknown_or_impossible__refused_and_nothing_changed),
      cmocka_unit_test(window__losses__shrinks_and_recovers),
  };
  return cmocka_run_group_tests_name("roce-connection", tests, nullptr, nullptr);
}
