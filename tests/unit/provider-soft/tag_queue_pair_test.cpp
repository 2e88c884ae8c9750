// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A connection whose end b matches tags: packets, references to bytes, failures, and hostile messages.
#include "provider/soft/tag_matching/tag_queue_pair.hpp"

#include <random>

#include "tests/unit/provider-soft/matching_pair.hpp"
// C++'s headers use names that cmocka defines as macros.
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::soft;
using namespace dapple::soft::test;
using namespace dapple::roce;
using namespace dapple::roce::test;

namespace {

struct Matching : MatchingPair {
  using MatchingPair::MatchingPair;

  void receive(uint64_t id, uint32_t length) { assert_true(MatchingPair::receive(id, length)); }
  void send(uint32_t length) { assert_true(MatchingPair::send(length)); }
  // A message of several packets, or a rendezvous, whose first packet is here.
  void begin_message(bool is_rendezvous) {
    add(5, 9, 2000);
    if (is_rendezvous) {
      write_rendezvous(9, 500);
    } else {
      write_header(IBV_TMH_EAGER, 9);
    }
    send(is_rendezvous ? uint32_t{kRendezvousHeaderSize} : 3 * kMtu);
    transmit();
    deliver(a, b);
  }
  void expect(size_t number, uint64_t id, CompletionOpcode opcode, unsigned flags, uint32_t bytes) const {
    assert_true(number < got().size());
    const Completion& one = got()[number];
    assert_int_equal(one.status, CompletionStatus::kSuccess);
    assert_int_equal(one.request_id, id);
    assert_int_equal(one.opcode, opcode);
    assert_int_equal(one.flags, flags);
    assert_int_equal(one.byte_count, bytes);
  }
  bool has_arrived(uint64_t from, uint32_t length) {
    return memcmp(b.at(kBase + kPlace), a.at(kBase + from), length) == 0 && b.bytes[kPlace + length] == kOld &&
           b.bytes[kPlace - 1] == kOld;
  }
};

constexpr unsigned kBoth = kTagMatch | kTagDataValid;

void eager__of_every_length(void**) {
  for (const bool refers : {false, true}) {
    for (uint32_t length = 0; length < 3 * kMtu; length += length % kMtu < 20 ? 1 : 59) {
      Matching pair(true, refers);
      // An entry of two pieces: the endpoint's memory has them in a row.
      pair.add(5, 9, 2000);
      pair.write_header(IBV_TMH_EAGER, 9);
      pair.send(kTagHeaderSize + length);
      pair.run();
      assert_int_equal(pair.a.sent.size(), 1);
      assert_int_equal(pair.a.sent[0].status, CompletionStatus::kSuccess);
      const bool is_one = kTagHeaderSize + length <= kMtu;
      assert_int_equal(pair.got().size(), is_one ? 1 : 2);
      if (!is_one) pair.expect(0, 5, CompletionOpcode::kTagReceive, kTagMatch, 0);
      pair.expect(pair.got().size() - 1, 5, CompletionOpcode::kTagReceive, is_one ? kBoth : unsigned{kTagDataValid},
                  length);
      assert_true(pair.has_arrived(kTagHeaderSize, length));
      assert_int_equal(pair.used(), 0);
    }
  }
}

// The first packet brings a reference, and nobody can follow it: packets bring the bytes, and the match is told once.
void eager__whose_bytes_cannot_be_fetched__comes_by_packets(void**) {
  for (const uint32_t reached : {0u, 1u}) {
    Matching pair(true, true);
    pair.a.lends = reached;
    pair.add(5, 9, 4000);
    pair.write_header(IBV_TMH_EAGER, 9);
    pair.send(kTagHeaderSize + 3000);
    pair.run();
    assert_int_equal(pair.a.sent.size(), 1);
    assert_int_equal(pair.a.sent[0].status, CompletionStatus::kSuccess);
    assert_int_equal(pair.b.qp->counters().rnr_naks_sent, 0);
    assert_int_equal(pair.got().size(), 2);
    pair.expect(0, 5, CompletionOpcode::kTagReceive, kTagMatch, 0);
    pair.expect(1, 5, CompletionOpcode::kTagReceive, kTagDataValid, 3000);
    assert_true(pair.has_arrived(kTagHeaderSize, 3000));
  }
}

void eager__a_lost_packet__comes_again(void**) {
  Matching pair;
  pair.add(5, 9, 4000);
  pair.write_header(IBV_TMH_EAGER, 9);
  pair.send(kTagHeaderSize + 3 * kMtu);
  pair.transmit();
  pair.deliver(pair.a, pair.b);
  pair.a.link.pop_front();
  pair.run();
  assert_int_equal(pair.got().size(), 2);
  pair.expect(1, 5, CompletionOpcode::kTagReceive, kTagDataValid, 3 * kMtu);
  assert_true(pair.has_arrived(kTagHeaderSize, 3 * kMtu));
}

void eager__longer_than_its_entry__writes_nothing_behind_it(void**) {
  for (const uint32_t length : {101u, 3 * kMtu}) {
    Matching pair;
    pair.add(5, 9, 100);
    pair.write_header(IBV_TMH_EAGER, 9);
    pair.send(kTagHeaderSize + length);
    pair.run();
    assert_int_equal(pair.got().back().status, CompletionStatus::kLocalLength);
    assert_int_equal(pair.got().back().request_id, 5);
    assert_int_equal(pair.a.sent[0].status, CompletionStatus::kRemoteInvalidRequest);
    assert_true(pair.b.bytes[kPlace + 100] == kOld);
    assert_int_equal(pair.used(), 0);
  }
}

void eager__to_memory_that_is_gone__fails(void**) {
  Matching pair;
  pair.add(5, 9, 100, kBadKey);
  pair.write_header(IBV_TMH_EAGER, 9);
  pair.send(kTagHeaderSize + 8);
  pair.run();
  assert_int_equal(pair.got().size(), 1);
  assert_int_equal(pair.got()[0].status, CompletionStatus::kLocalProtection);
  assert_int_equal(pair.used(), 0);
}

void rendezvous__reads_and_ends(void**) {
  for (const bool places : {false, true}) {
    for (const uint32_t length : {0u, 1u, kMtu, 10 * kMtu + 3}) {
      Matching pair;
      if (places) pair.b.places_into = &pair.a;
      pair.add(5, 9, 4000);
      pair.a.post_receive(100, 100000);
      pair.write_rendezvous(9, length);
      pair.send(kRendezvousHeaderSize + 7);
      pair.run();
      assert_int_equal(pair.got().size(), 2);
      pair.expect(0, 5, CompletionOpcode::kTagReceive, kTagMatch, 0);
      pair.expect(1, 5, CompletionOpcode::kTagReceive, kTagDataValid, length);
      if (length > 0) assert_true(pair.has_arrived(kSource, length));
      assert_int_equal(pair.a.receive_completions.all.size(), 1);
      assert_int_equal(pair.a.receive_completions.all[0].byte_count, kRendezvousHeaderSize);
      assert_true(pair.a.bytes[100000] == std::byte{IBV_TMH_FIN});
      assert_memory_equal(&pair.a.bytes[100001], &pair.a.bytes[1], kRendezvousHeaderSize - 1);
      assert_int_equal(pair.used(), 0);
      assert_true(pair.b.sent.empty());
    }
  }
}

// The sender may use its memory again when the end comes. So the end leaves after all bytes have come.
void rendezvous__the_end_waits_for_the_bytes(void**) {
  Matching pair;
  pair.add(5, 9, 4000);
  pair.a.post_receive(100, 100000);
  pair.write_rendezvous(9, 4 * kMtu);
  pair.send(kRendezvousHeaderSize);
  pair.transmit();
  pair.deliver(pair.a, pair.b);
  pair.transmit();
  // An acknowledgement and the request of the Read.
  while (!pair.b.link.empty()) pair.deliver(pair.b, pair.a);
  pair.a.qp->transmit(pair.now, pair.a);
  assert_int_equal(pair.a.link.size(), 4);
  pair.deliver(pair.a, pair.b);
  pair.b.qp->transmit(pair.now, pair.b);
  assert_true(pair.b.link.empty());
  assert_int_equal(pair.got().size(), 1);
  pair.run();
  assert_int_equal(pair.got().size(), 2);
  assert_int_equal(pair.a.receive_completions.all.size(), 1);
}

void rendezvous__a_lying_length__writes_nothing(void**) {
  for (const uint32_t length : {101u, 1u << 31, UINT32_MAX}) {
    Matching pair;
    pair.add(5, 9, 100);
    pair.write_rendezvous(9, length);
    pair.send(kRendezvousHeaderSize + 3);
    pair.run();
    assert_int_equal(pair.got().size(), 1);
    assert_int_equal(pair.got()[0].status, CompletionStatus::kRendezvousIncomplete);
    assert_int_equal(pair.got()[0].byte_count, kRendezvousHeaderSize + 3);
    assert_true(pair.has_arrived(0, kRendezvousHeaderSize + 3));
    assert_int_equal(pair.b.qp->state(), QpState::kRts);
    assert_int_equal(pair.used(), 0);
  }
}

void rendezvous__a_longer_message__is_left_to_the_program(void**) {
  for (const bool refers : {false, true}) {
    Matching pair(true, refers);
    pair.add(5, 9, 1000);
    pair.write_rendezvous(9, 10);
    pair.send(kMaxRendezvousMessage + 1);
    pair.run();
    assert_int_equal(pair.got().size(), 1);
    assert_int_equal(pair.got()[0].status, CompletionStatus::kRendezvousIncomplete);
    assert_int_equal(pair.got()[0].byte_count, kMaxRendezvousMessage + 1);
    assert_true(pair.has_arrived(0, kMaxRendezvousMessage + 1));
  }
}

void rendezvous__to_an_entry_without_room_for_its_headers__fails(void**) {
  Matching pair;
  pair.add(5, 9, 20);
  pair.write_rendezvous(9, 1000);
  pair.send(kRendezvousHeaderSize);
  pair.run();
  assert_int_equal(pair.got().size(), 1);
  assert_int_equal(pair.got()[0].status, CompletionStatus::kLocalLength);
  assert_true(pair.b.bytes[kPlace + 20] == kOld);
}

void rendezvous__without_reads__is_incomplete(void**) {
  Matching pair(false);
  pair.add(5, 9, 1000);
  pair.write_rendezvous(9, 10);
  pair.send(kRendezvousHeaderSize);
  pair.run();
  assert_int_equal(pair.got()[0].status, CompletionStatus::kRendezvousIncomplete);
  // The program's own requests.
  assert_int_equal(pair.b.qp->post_send(pair.b.request(SendOpcode::kRead, 10)), PostError::kNone);
  pair.run();
  assert_int_equal(pair.b.sent.size(), 1);
}

void rendezvous__the_program_has_no_requests(void**) {
  Matching pair;
  assert_int_equal(pair.b.qp->post_send(pair.b.request(SendOpcode::kSend, 10)), PostError::kFull);
  assert_int_equal(pair.b.qp->check_send(pair.b.request(SendOpcode::kSend, 10), 0), PostError::kFull);
}

void rendezvous__with_a_wrong_key__fails_once(void**) {
  Matching pair;
  pair.add(5, 9, 1000);
  pair.write_rendezvous(9, 500, kBadKey);
  pair.send(kRendezvousHeaderSize);
  pair.run();
  assert_int_equal(pair.got().size(), 2);
  assert_int_equal(pair.got()[1].status, CompletionStatus::kRemoteAccess);
  assert_int_equal(pair.got()[1].request_id, 5);
  assert_int_equal(pair.used(), 0);
  assert_true(pair.b.bytes[kPlace] == kOld);
}

void rendezvous__of_a_silent_peer__fails(void**) {
  Matching pair;
  pair.add(5, 9, 1000);
  pair.write_rendezvous(9, 500);
  pair.send(kRendezvousHeaderSize);
  pair.transmit();
  pair.deliver(pair.a, pair.b);
  for (int i = 0; i < 100 && pair.got().size() < 2; ++i) {
    pair.b.qp->transmit(pair.now, pair.b);
    pair.b.link.clear();
    pair.now = pair.b.qp->deadline() == kNever ? pair.now : pair.b.qp->deadline();
    pair.b.qp->expire(pair.now);
  }
  assert_int_equal(pair.got().size(), 2);
  assert_int_equal(pair.got()[1].status, CompletionStatus::kRetryExceeded);
  assert_int_equal(pair.used(), 0);
}

// The receiver takes as many as it can, and asks for the others again.
void rendezvous__more_than_have_room(void**) {
  Matching pair;
  for (uint32_t i = 0; i < kMaxRendezvous + 8; ++i) {
    pair.add(100 + i, 9, 1000);
    pair.a.post_receive(100, 100000);
  }
  pair.write_rendezvous(9, 200);
  for (uint32_t i = 0; i < kMaxRendezvous + 8; ++i) {
    pair.send(kRendezvousHeaderSize);
    // Without answers of the peer nothing ends.
    pair.a.qp->transmit(pair.now, pair.a);
    while (!pair.a.link.empty()) pair.deliver(pair.a, pair.b);
    if (pair.a.qp->outstanding_sends() == 16) break;
  }
  for (int i = 0; i < 1000 && pair.got().size() < 2 * kMaxRendezvous; ++i) {
    pair.run();
    if (pair.a.qp->deadline() != kNever || pair.b.qp->deadline() != kNever) pair.sleep();
  }
  for (const Completion& one : pair.got()) assert_int_equal(one.status, CompletionStatus::kSuccess);
  assert_true(pair.got().size() >= 2 * kMaxRendezvous);
}

void state__error_and_reset__give_entries_back(void**) {
  for (const QpState to : {QpState::kError, QpState::kReset}) {
    for (const bool is_rendezvous : {false, true}) {
      Matching pair;
      pair.begin_message(is_rendezvous);
      assert_int_equal(pair.used(), 1);
      QpAttributes attributes;
      attributes.state = to;
      assert_true(pair.b.qp->modify(attributes, kState));
      assert_int_equal(pair.used(), 0);
      assert_int_equal(pair.got().size(), to == QpState::kError ? 2 : 1);
      if (to == QpState::kError) assert_int_equal(pair.got()[1].status, CompletionStatus::kFlushed);
    }
  }
}

void state__the_queue_pair_ends__gives_entries_back(void**) {
  for (const bool is_rendezvous : {false, true}) {
    Matching pair;
    pair.begin_message(is_rendezvous);
    pair.receives.reset();
    pair.rendezvous.reset();
    assert_int_equal(pair.used(), 0);
  }
}

// The completion queue is full: the connection ends, and nothing is lost in the list.
void completion__lost__ends_the_connection(void**) {
  for (const size_t room : {0, 1}) {
    Matching pair;
    pair.b.receive_completions.room = room;
    pair.add(5, 9, 2000);
    pair.a.post_receive(100, 100000);
    pair.write_rendezvous(9, 500);
    pair.send(kRendezvousHeaderSize);
    pair.run();
    assert_int_equal(pair.used(), 0);
  }
}

// Whatever a peer sends, the program gets one last completion for each entry, and no other bytes change.
void hostile__any_messages(void**) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    Matching pair(random() % 4 != 0, random() % 2 == 0);
    const uint32_t room = random() % 400;
    const uint32_t entries = 1 + random() % 3;
    for (uint32_t i = 0; i < entries; ++i) pair.add(1000 + i, random() % 2, room);
    for (uint64_t id = 1; id < 4; ++id) pair.receive(id, 300);
    for (int i = 0; i < 6; ++i) {
      if (pair.a.qp->state() != QpState::kRts) break;
      pair.a.post_receive(100, 100000);
      switch (random() % 3) {
        case 0:
          pair.write_header(static_cast<uint8_t>(random() % 6), random() % 3);
          break;
        case 1:
          pair.write_rendezvous(random() % 2, static_cast<uint32_t>(random() % 500),
                                random() % 8 == 0 ? kBadKey : kKey);
          break;
        default:
          for (size_t at = 1; at < 32; ++at) pair.a.bytes[at] = static_cast<std::byte>(random() % 2);
          break;
      }
      pair.send(random() % 3 == 0 ? random() % 40 : random() % 700);
      pair.run();
    }
    QpAttributes attributes;
    attributes.state = QpState::kError;
    assert_true(pair.b.qp->modify(attributes, kState));
    uint32_t ends = 0;
    for (const Completion& one : pair.got()) {
      const bool is_last = one.status != CompletionStatus::kSuccess || (one.flags & kTagDataValid) != 0;
      if (one.request_id >= 1000 && is_last) ++ends;
    }
    assert_int_equal(ends, entries - pair.used());
    for (size_t at = 300; at < pair.b.bytes.size(); ++at) {
      if (at < kPlace || at >= kPlace + room) assert_true(pair.b.bytes[at] == kOld);
    }
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(eager__of_every_length),
      cmocka_unit_test(eager__whose_bytes_cannot_be_fetched__comes_by_packets),
      cmocka_unit_test(eager__a_lost_packet__comes_again),
      cmocka_unit_test(eager__longer_than_its_entry__writes_nothing_behind_it),
      cmocka_unit_test(eager__to_memory_that_is_gone__fails),
      cmocka_unit_test(rendezvous__reads_and_ends),
      cmocka_unit_test(rendezvous__the_end_waits_for_the_bytes),
      cmocka_unit_test(rendezvous__a_lying_length__writes_nothing),
      cmocka_unit_test(rendezvous__a_longer_message__is_left_to_the_program),
      cmocka_unit_test(rendezvous__to_an_entry_without_room_for_its_headers__fails),
      cmocka_unit_test(rendezvous__without_reads__is_incomplete),
      cmocka_unit_test(rendezvous__the_program_has_no_requests),
      cmocka_unit_test(rendezvous__with_a_wrong_key__fails_once),
      cmocka_unit_test(rendezvous__of_a_silent_peer__fails),
      cmocka_unit_test(rendezvous__more_than_have_room),
      cmocka_unit_test(state__error_and_reset__give_entries_back),
      cmocka_unit_test(state__the_queue_pair_ends__gives_entries_back),
      cmocka_unit_test(completion__lost__ends_the_connection),
      cmocka_unit_test(hostile__any_messages),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
