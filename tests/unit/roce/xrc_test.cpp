// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Extended reliable connections: one end sends, and the other end takes its receives from the queue that each packet
// names.
#include "roce/core/syndrome.hpp"
#include "tests/unit/roce/pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

constexpr uint32_t kSrq = 0x123456;
constexpr uint32_t kOtherSrq = 0x123457;
constexpr uint32_t kDomain = 7;
constexpr uint32_t kOtherDomain = 8;

struct XrcPair : Pair {
  XrcPair() : Pair(QpType::kXrcSend, QpType::kXrcReceive) { b.srqs = {{kSrq, kDomain}, {kOtherSrq, kOtherDomain}}; }

  void post(SendOpcode opcode, uint32_t length, uint32_t srq = kSrq) {
    SendRequest request = a.request(opcode, length);
    request.remote_srq = srq;
    assert_int_equal(a.qp->post_send(request), PostError::kNone);
  }
};

Headers send_first(uint32_t psn, uint32_t srq, Operation operation = Operation::kSendFirst) {
  Headers headers;
  headers.opcode = opcode_of(Transport::kXrc, operation);
  headers.destination_qpn = 0x22;
  headers.psn = psn;
  headers.ack_request = true;
  headers.xrc_srq = srq;
  return headers;
}

void assert_refused(XrcPair& pair) {
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.link.size(), 1);
  const Packet answer = Pair::parsed(pair.b.link.front());
  assert_int_equal(answer.headers.aeth.syndrome, nak_syndrome(NakCode::kInvalidRequest));
  assert_int_equal(pair.b.qp->state(), QpState::kError);
}

void send__each_packet_names_the_queue_of_its_message(void**) {
  XrcPair pair;
  assert_true(pair.is_connected);
  pair.b.post_receive(2000, 4096);
  pair.post(SendOpcode::kSendImmediate, 1001, kOtherSrq);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.a.link.size(), 4);
  for (const Bytes& bytes : pair.a.link) {
    const Packet packet = Pair::parsed(bytes);
    assert_int_equal(packet.info->transport, Transport::kXrc);
    assert_int_equal(packet.headers.xrc_srq, kOtherSrq);
  }
  pair.run();
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kSuccess);
  assert_memory_equal(pair.b.at(kBase + 4096), pair.a.at(kBase), 1001);
  // The memory of a receive has the protection domain of its queue.
  assert_int_equal(pair.b.accessor.domain, kOtherDomain);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  assert_int_equal(pair.b.receive_completions.all[0].byte_count, 1001);
  assert_int_equal(pair.b.receive_completions.all[0].source_qpn, 0x11);
  // It could be destroyed between two packets.
  assert_int_equal(pair.b.selected.size(), 4);
}

void operations__all_of_a_reliable_connection(void**) {
  XrcPair pair;
  const uint64_t start = 5;
  pair.post(SendOpcode::kWrite, 40000);
  pair.run();
  assert_memory_equal(pair.b.at(kBase), pair.a.at(kBase), 40000);
  pair.b.post_receive(0);
  pair.post(SendOpcode::kWriteImmediate, 300, kOtherSrq);
  pair.run();
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  assert_int_equal(pair.b.receive_completions.all[0].opcode, CompletionOpcode::kReceiveWriteImmediate);
  memcpy(pair.b.at(kBase), &start, 8);
  SendRequest add = pair.a.request(SendOpcode::kFetchAdd, 8, 64);
  add.compare_or_add = 3;
  add.remote_srq = kSrq;
  assert_int_equal(pair.a.qp->post_send(add), PostError::kNone);
  pair.post(SendOpcode::kRead, 100000);
  pair.run();
  assert_memory_equal(pair.a.at(kBase), pair.b.at(kBase), 100000);
  pair.b.post_receive(100);
  pair.post(SendOpcode::kSendInvalidate, 100);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 5);
  for (const Completion& completion : pair.a.sent) assert_int_equal(completion.status, CompletionStatus::kSuccess);
}

void operations__flush_and_atomic_write_are_those_of_reliable_connections(void**) {
  XrcPair pair;
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kFlush, 0)), PostError::kOpcode);
  assert_int_equal(pair.a.qp->post_send(pair.a.request(SendOpcode::kAtomicWrite, 0)), PostError::kOpcode);
  // The receiving end sends nothing.
  assert_int_equal(pair.b.qp->post_send(pair.b.request(SendOpcode::kSend, 8)), PostError::kOpcode);
}

void send__without_a_receive__is_sent_again(void**) {
  XrcPair pair;
  pair.post(SendOpcode::kSend, 100);
  pair.run();
  assert_true(pair.a.sent.empty());
  assert_int_equal(pair.b.qp->counters().rnr_naks_sent, 1);
  pair.b.post_receive(100);
  pair.sleep();
  pair.run();
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kSuccess);
}

// As if its packets were lost: no NAK, no retry less than for a loss, and nothing is done twice.
void memory__whose_owner_answers_later__is_asked_again(void**) {
  constexpr SendOpcode kOperations[] = {SendOpcode::kSend, SendOpcode::kWrite,    SendOpcode::kWriteImmediate,
                                        SendOpcode::kRead, SendOpcode::kFetchAdd, SendOpcode::kSendInvalidate};
  for (const SendOpcode opcode : kOperations) {
    for (int late = 1; late < 5; ++late) {
      XrcPair pair;
      pair.b.late_accesses = late;
      pair.b.post_receive(2000, 4096);
      pair.post(opcode, opcode == SendOpcode::kFetchAdd ? 8 : 1000);
      for (int i = 0; i < 8 && pair.a.sent.empty(); ++i) {
        pair.run();
        if (pair.a.sent.empty()) pair.sleep();
      }
      assert_int_equal(pair.a.sent.size(), 1);
      assert_int_equal(pair.a.sent[0].status, CompletionStatus::kSuccess);
      assert_int_equal(pair.b.qp->counters().sequence_naks_sent, 0);
      const bool sends = opcode == SendOpcode::kSend || opcode == SendOpcode::kSendInvalidate;
      const bool receives = sends || opcode == SendOpcode::kWriteImmediate;
      assert_int_equal(pair.b.receive_completions.all.size(), receives ? 1 : 0);
      assert_int_equal(pair.b.atomics, opcode == SendOpcode::kFetchAdd ? 1 : 0);
      if (!sends) continue;
      assert_int_equal(pair.b.receive_completions.all[0].byte_count, 1000);
      assert_memory_equal(pair.b.at(kBase + 4096), pair.a.at(kBase), 1000);
    }
  }
}

void send__to_a_queue_that_does_not_exist__is_an_invalid_request(void**) {
  XrcPair pair;
  pair.b.post_receive(100);
  pair.post(SendOpcode::kSend, 100, kSrq + 5);
  pair.run();
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kRemoteInvalidRequest);
  assert_int_equal(pair.b.raised.front(), QpEvent::kRequestError);
}

void message__its_packets_name_one_queue(void**) {
  XrcPair pair;
  pair.b.post_receive(2000);
  const Bytes payload(kMtu);
  pair.inject(pair.b, send_first(kFirstPsn, kSrq), payload);
  pair.inject(pair.b, send_first(kFirstPsn + 1, kOtherSrq, Operation::kSendLast), payload);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  assert_int_equal(pair.b.receive_completions.all[0].status, CompletionStatus::kRemoteInvalidRequest);
  assert_refused(pair);
}

// The program may use the receive's memory again at once, and gets no message of this queue any more.
void message__whose_queue_is_destroyed_on_the_way__ends(void**) {
  XrcPair pair;
  pair.b.post_receive(2000);
  memset(pair.b.at(kBase), 'u', 2000);
  const Bytes payload(kMtu);
  pair.inject(pair.b, send_first(kFirstPsn, kSrq), payload);
  pair.b.srqs.erase(kSrq);
  const std::byte untouched = *pair.b.at(kBase + kMtu);
  pair.inject(pair.b, send_first(kFirstPsn + 1, kSrq, Operation::kSendLast), payload);
  assert_true(*pair.b.at(kBase + kMtu) == untouched);
  assert_int_equal(pair.b.receive_completions.all.size(), 1);
  assert_int_equal(pair.b.receive_completions.all[0].status, CompletionStatus::kRemoteInvalidRequest);
  assert_refused(pair);
}

// Its last packet needs a receive, and would be sent again for ever.
void write_with_immediate__whose_queue_is_destroyed_on_the_way__ends(void**) {
  XrcPair pair;
  pair.post(SendOpcode::kWriteImmediate, 1000);
  pair.run();
  assert_int_equal(pair.b.qp->counters().rnr_naks_sent, 1);
  pair.b.srqs.erase(kSrq);
  pair.sleep();
  pair.run();
  assert_int_equal(pair.a.sent.size(), 1);
  assert_int_equal(pair.a.sent[0].status, CompletionStatus::kRemoteInvalidRequest);
  assert_int_equal(pair.b.raised.front(), QpEvent::kRequestError);
}

// A lost packet is no reason to look at its queue.
void gap__is_answered_before_the_queue_counts(void**) {
  XrcPair pair;
  pair.inject(pair.b, send_first(kFirstPsn + 3, kSrq + 5, Operation::kSendOnly), Bytes(8));
  assert_true(pair.b.selected.empty());
  assert_int_equal(pair.b.qp->counters().sequence_naks_sent, 1);
  assert_int_equal(pair.b.qp->state(), QpState::kRts);
}

void ends__take_the_packets_of_their_half_only(void**) {
  XrcPair pair;
  pair.b.post_receive(100);
  // A request to the end that sends, and packets of another transport.
  pair.inject(pair.a, send_first(kFirstPsn, kSrq, Operation::kSendOnly), Bytes(8));
  assert_int_equal(pair.a.qp->counters().dropped_packets, 1);
  Headers plain = send_first(kFirstPsn, 0, Operation::kSendOnly);
  plain.opcode = opcode_of(Transport::kRc, Operation::kSendOnly);
  pair.inject(pair.b, plain, Bytes(8));
  assert_int_equal(pair.b.qp->counters().dropped_packets, 1);
  assert_int_equal(pair.b.receives.size(), 1);
  assert_null(pair.a.qp->reliable_connection());
  Pair rc;
  rc.b.post_receive(100);
  rc.inject(rc.b, send_first(kFirstPsn, kSrq, Operation::kSendOnly), Bytes(8));
  assert_int_equal(rc.b.qp->counters().dropped_packets, 1);
  assert_int_equal(rc.b.receives.size(), 1);
}

// The domain of a Read's memory stays that of its own queue.
void read__again_after_another_queue__uses_the_memory_of_its_own(void**) {
  XrcPair pair;
  pair.post(SendOpcode::kRead, 300);
  pair.post(SendOpcode::kWrite, 8, kOtherSrq);
  pair.a.qp->transmit(pair.now, pair.a);
  const Bytes request = pair.a.link.front();
  while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.reader.domain, kDomain);
  pair.b.reader = {};
  pair.b.qp->receive(pair.now, Pair::parsed(request));
  pair.b.qp->transmit(pair.now, pair.b);
  assert_int_equal(pair.b.reader.domain, kDomain);
}

void transitions__each_end_has_the_attributes_of_its_half(void**) {
  const uint32_t path = kAddress | kPathMtu | kDestinationQpn | kReceivePsn;
  assert_true(transition_allowed(QpType::kXrcSend, QpState::kInit, QpState::kRtr, kState | path));
  assert_false(transition_allowed(QpType::kXrcSend, QpState::kInit, QpState::kRtr, kState | path | kMinRnrTimer));
  assert_false(transition_allowed(QpType::kXrcReceive, QpState::kInit, QpState::kRtr, kState | path));
  assert_true(transition_allowed(QpType::kXrcReceive, QpState::kInit, QpState::kRtr,
                                 kState | path | kMinRnrTimer | kMaxDestRdAtomic));
  assert_true(transition_allowed(QpType::kXrcSend, QpState::kRtr, QpState::kRts,
                                 kState | kTimeout | kRetryCount | kRnrRetry | kMaxRdAtomic | kSendPsn));
  assert_true(transition_allowed(QpType::kXrcReceive, QpState::kRtr, QpState::kRts, kState | kTimeout | kSendPsn));
  assert_false(
      transition_allowed(QpType::kXrcReceive, QpState::kRtr, QpState::kRts, kState | kTimeout | kSendPsn | kRnrRetry));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(send__each_packet_names_the_queue_of_its_message),
      cmocka_unit_test(operations__all_of_a_reliable_connection),
      cmocka_unit_test(operations__flush_and_atomic_write_are_those_of_reliable_connections),
      cmocka_unit_test(send__without_a_receive__is_sent_again),
      cmocka_unit_test(memory__whose_owner_answers_later__is_asked_again),
      cmocka_unit_test(send__to_a_queue_that_does_not_exist__is_an_invalid_request),
      cmocka_unit_test(message__its_packets_name_one_queue),
      cmocka_unit_test(message__whose_queue_is_destroyed_on_the_way__ends),
      cmocka_unit_test(write_with_immediate__whose_queue_is_destroyed_on_the_way__ends),
      cmocka_unit_test(gap__is_answered_before_the_queue_counts),
      cmocka_unit_test(ends__take_the_packets_of_their_half_only),
      cmocka_unit_test(read__again_after_another_queue__uses_the_memory_of_its_own),
      cmocka_unit_test(transitions__each_end_has_the_attributes_of_its_half),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
