// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reliable connections, packet by packet: what the responder refuses, and what the requester learns of it.
#include <tuple>

#include "tests/unit/roce/connection.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

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
    headers.opcode = rc_opcode(refusal.operation);
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
    nak.opcode = rc_opcode(Operation::kAcknowledge);
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

}  // namespace

int main() {
  const CMUnitTest tests[] = {
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
  };
  return cmocka_run_group_tests_name("roce-refusals", tests, nullptr, nullptr);
}
