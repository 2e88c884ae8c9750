// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reliable connections, packet by packet: each operation, and the limits of their number.
#include <initializer_list>

#include "tests/unit/roce/connection.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

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
  };
  return cmocka_run_group_tests_name("roce-operations", tests, nullptr, nullptr);
}
