// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reliable connections, packet by packet: lost packets, receives that are missing, strange packets, and the window.
#include <initializer_list>

#include "tests/unit/roce/connection.hpp"

using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

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
  ghost.opcode = rc_opcode(Operation::kAcknowledge);
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
  response.opcode = rc_opcode(Operation::kReadResponseOnly);
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
  add.opcode = rc_opcode(Operation::kFetchAdd);
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
      cmocka_unit_test(window__losses__shrinks_and_recovers),
  };
  return cmocka_run_group_tests_name("roce-losses", tests, nullptr, nullptr);
}
