// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Three programs are three objects that use one file: a target with memory, and two others that are connected to it and
// to each other.
#include "provider/soft/check/races/races.hpp"

#include <initializer_list>

#include "tests/unit/provider-soft/races_cases.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;
using namespace dapple::tests;
using check::NotedAccess;
using check::Races;
using dapple::roce::SendOpcode;
using Kind = NotedAccess::Kind;

uint32_t qpn_of(int program, int peer) {
  return static_cast<uint32_t>((program + 1) << kLargeSlotBits | (peer + 1));
}

struct World {
  OwnedFd file = make_counters_file();
  Races programs[kPrograms];
  uint32_t next_psn[kPrograms][kPrograms] = {};

  World() {
    for (int i = 0; i < kPrograms; i++) programs[i].open(file.get(), static_cast<uint32_t>(i + 1));
    for (int i = 0; i < kPrograms; i++) {
      for (int peer = 0; peer < kPrograms; peer++) {
        if (peer == i) continue;
        programs[i].meet(qpn_of(peer, i));
        programs[i].connect(qpn_of(i, peer), qpn_of(peer, i));
      }
    }
  }
  // Returns the PSN.
  uint32_t post(int program, int peer, SendOpcode opcode, std::span<const Races::Range> memory = {}) {
    const uint32_t psn = next_psn[program][peer]++;
    programs[program].post(
        qpn_of(program, peer),
        {.id = psn, .opcode = opcode, .is_signaled = true, .is_told = true, .first_psn = psn, .packets = 1}, memory);
    return psn;
  }
  static Races::Arrival packet(int program, int peer, uint32_t psn) {
    return {qpn_of(peer, program), qpn_of(program, peer), psn};
  }
  // Tells whether the access of the target's memory races.
  bool arrive(int program, uint32_t psn, Kind kind, Races::Range range = kWord) {
    const Races::Arrival arrival = packet(program, kTarget, psn);
    const bool is_race = programs[kTarget].access(arrival, range, {.kind = kind}).has_value();
    if (kind != Kind::kWrite) programs[kTarget].answer(arrival, range, kind);
    return is_race;
  }
  bool write(int program, Races::Range range = kWord) {
    return arrive(program, post(program, kTarget, SendOpcode::kWrite), Kind::kWrite, range);
  }
  // The program polls the completion of its request.
  void poll(int program, int peer, uint32_t psn) {
    (void)programs[program].sent(qpn_of(program, peer), psn, true);
    programs[program].polled(qpn_of(program, peer), false, psn);
  }
  void poll_last(int program, int peer) { poll(program, peer, next_psn[program][peer] - 1); }
  // A message, until the peer polls it.
  void tell(int program, int peer) {
    const uint32_t psn = post(program, peer, SendOpcode::kSend);
    programs[peer].received(packet(program, peer, psn), 7);
    programs[peer].polled(qpn_of(peer, program), true, 7);
  }
};
using Cases = RaceCases<World>;
World*& world = Cases::world;

// The post of the message counts, and not its poll.
void access__later_arrival__is_in_the_order_of_the_posts(void**) {
  const uint32_t psn = world->post(kTwo, kTarget, SendOpcode::kWrite);
  assert_false(world->write(kOne));
  world->poll_last(kOne, kTarget);
  world->tell(kOne, kTwo);
  assert_true(world->arrive(kTwo, psn, Kind::kWrite));
}

void answer__atomic_on_the_word__is_in_order(void**) {
  constexpr Races::Range kCount = {8192, 8200};
  assert_false(world->write(kOne));
  assert_false(world->arrive(kOne, world->post(kOne, kTarget, SendOpcode::kFetchAdd), Kind::kAtomic, kCount));
  assert_false(world->arrive(kTwo, world->post(kTwo, kTarget, SendOpcode::kFetchAdd), Kind::kAtomic, kCount));
  world->poll_last(kTwo, kTarget);
  assert_false(world->write(kTwo));
}

void answer__atomic_on_another_word__races(void**) {
  constexpr Races::Range kCount = {8192, 8200};
  assert_false(world->write(kOne));
  assert_false(world->arrive(kTwo, world->post(kTwo, kTarget, SendOpcode::kFetchAdd), Kind::kAtomic, kCount));
  world->poll_last(kTwo, kTarget);
  assert_true(world->write(kTwo));
}

// Whoever has no place in the file may have told anything.
void received__unknown_sender__knows_all(void**) {
  assert_false(world->write(kOne));
  Races& two = world->programs[kTwo];
  two.received({qpn_of(kTwo, kOne), 0, 5}, 9);
  two.polled(qpn_of(kTwo, kOne), true, 9);
  assert_false(world->write(kTwo));
}

void connect__earlier_requests__are_known(void**) {
  assert_false(world->write(kOne));
  world->programs[kTwo].connect(qpn_of(kTwo, kTarget), qpn_of(kTarget, kTwo));
  assert_false(world->write(kTwo));
}

// A Read that the peer has completed is known only so.
void end__of_the_target__peers_requests_are_known(void**) {
  assert_false(world->arrive(kOne, world->post(kOne, kTarget, SendOpcode::kRead), Kind::kRead));
  world->programs[kTarget].end(qpn_of(kTarget, kOne));
  world->tell(kTarget, kTwo);
  assert_false(world->write(kTwo));
}

void end__of_another_queue_pair__changes_nothing(void**) {
  assert_false(world->arrive(kOne, world->post(kOne, kTarget, SendOpcode::kRead), Kind::kRead));
  world->programs[kOne].end(qpn_of(kOne, kTwo));
  world->tell(kTarget, kTwo);
  assert_true(world->write(kTwo));
}

void access__own_request__races(void**) {
  const Races::Range memory[] = {kWord};
  const uint32_t psn = world->post(kTarget, kOne, SendOpcode::kSend, memory);
  const Races::Arrival arrival = World::packet(kTwo, kTarget, world->post(kTwo, kTarget, SendOpcode::kWrite));
  const auto found = world->programs[kTarget].access(arrival, kWord, {.kind = Kind::kWrite});
  assert_true(found.has_value() && found->race.earlier.is_own);
  assert_int_equal(found->race.earlier.name, qpn_of(kTarget, kOne));
  // The receiver of the message may answer into its buffer.
  world->programs[kOne].received(World::packet(kTarget, kOne, psn), 7);
  world->programs[kOne].polled(qpn_of(kOne, kTarget), true, 7);
  world->programs[kTarget].forget(kWord);
  assert_false(world->write(kOne));
}

// Two connections of the target with itself. A program may look for a peer's Write in its memory, but its own request
// is complete when it has polled the completion.
void access__connections_of_one_program__race_until_the_poll(void**) {
  Races& program = world->programs[kTarget];
  constexpr uint32_t kFirst = 10;
  const auto number = [](uint32_t index) { return qpn_of(kTarget, static_cast<int>(kFirst + index)); };
  for (uint32_t i = 0; i < 4; i++) program.meet(number(i));
  for (uint32_t i = 0; i < 4; i++) program.connect(number(i), number(i ^ 1));
  const auto write = [&](uint32_t index, uint32_t psn) {
    program.post(
        number(index),
        {.id = psn, .opcode = SendOpcode::kWrite, .is_signaled = true, .is_told = true, .first_psn = psn, .packets = 1},
        {});
    return program.access({number(index ^ 1), number(index), psn}, kWord, {.kind = Kind::kWrite}).has_value();
  };
  assert_false(write(0, 0));
  assert_true(write(2, 0));
  for (const uint32_t index : {0U, 2U}) {
    (void)program.sent(number(index), 0, true);
    program.polled(number(index), false, 0);
  }
  assert_false(write(0, 1));
}

void sent__race__is_told_with_the_line_of_the_post(void**) {
  const check::Stack stack = check::Stack::here();
  assert_false(world->write(kOne));
  {
    const Races::Posting posting(stack);
    assert_true(world->write(kTwo));
  }
  const auto told = world->programs[kTwo].sent(qpn_of(kTwo, kTarget), 0, true);
  assert_int_equal(told.size(), 1);
  assert_int_equal(told[0].other_qpn, qpn_of(kOne, kTarget));
  assert_int_equal(told[0].posted.count, stack.count);
}

// Queue pairs of two hosts may have the same numbers.
void access__peer_at_another_address__is_unknown(void**) {
  check::Route far;
  far.destination[15] = 9;
  world->programs[kTarget].locate(qpn_of(kTarget, kOne), far);
  assert_false(world->write(kOne));
  assert_false(world->write(kTwo));
}

void access__addresses_of_both_ends__races(void**) {
  check::Route here, there;
  here.destination[15] = there.source[15] = 9;
  world->programs[kTarget].locate(qpn_of(kTarget, kOne), here);
  world->programs[kOne].locate(qpn_of(kOne, kTarget), there);
  assert_false(world->write(kOne));
  assert_true(world->write(kTwo));
}

// The program polls the second of two messages with one id. Returns whether its Write races with that of the sender,
// who has polled the completion between the two.
bool races_after_one_poll(Races::PollOrder order) {
  Races& two = world->programs[kTwo];
  two.connect(qpn_of(kTwo, kOne), qpn_of(kOne, kTwo), order);
  assert_false(world->write(kOne));
  for (int i = 0; i < 2; i++) {
    const uint32_t psn = world->post(kOne, kTwo, SendOpcode::kSend);
    two.received(World::packet(kOne, kTwo, psn), 7);
    if (i == 0) world->poll_last(kOne, kTarget);
  }
  two.polled(qpn_of(kTwo, kOne), true, 7);
  return world->write(kTwo);
}

void polled__any_order__may_be_the_last_message(void**) {
  assert_false(races_after_one_poll(Races::PollOrder::kAny));
}

void polled__order_of_messages__is_the_first_message(void**) {
  assert_true(races_after_one_poll(Races::PollOrder::kOfMessages));
}

void close__child_of_fork__tells_nothing(void**) {
  assert_false(world->write(kOne));
  {
    const std::lock_guard lock(world->programs[kTarget].mutex());
    world->programs[kTarget].close();
  }
  assert_false(world->write(kTwo));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(Cases::access__nothing_told__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(Cases::access__completion_and_message__is_in_order, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(Cases::access__message_before_completion__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__later_arrival__is_in_the_order_of_the_posts, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(Cases::access__target_has_seen_and_tells__is_in_order, Cases::begin,
                                      Cases::finish),
      cmocka_unit_test_setup_teardown(answer__atomic_on_the_word__is_in_order, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(answer__atomic_on_another_word__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(received__unknown_sender__knows_all, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(connect__earlier_requests__are_known, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(end__of_the_target__peers_requests_are_known, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(end__of_another_queue_pair__changes_nothing, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__own_request__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__connections_of_one_program__race_until_the_poll, Cases::begin,
                                      Cases::finish),
      cmocka_unit_test_setup_teardown(sent__race__is_told_with_the_line_of_the_post, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__peer_at_another_address__is_unknown, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__addresses_of_both_ends__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(polled__any_order__may_be_the_last_message, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(polled__order_of_messages__is_the_first_message, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(close__child_of_fork__tells_nothing, Cases::begin, Cases::finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
