// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Three programs on hosts of their own, which have nothing in common but marks: a target with memory, and two others
// that are connected to it and to each other. The clock of each host is ahead of that of the host before.
#include "provider/soft/check/races/races.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "provider/common/clock.hpp"
#include "tests/unit/provider-soft/races_cases.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;
using namespace dapple::tests;
using check::Mark;
using check::NotedAccess;
using check::Races;
using dapple::roce::SendOpcode;
using Kind = NotedAccess::Kind;

constexpr uint64_t kClockStep = 1'000'000'000'000'000;
// All programs have the same slot, and so the same numbers.
constexpr uint32_t kSlot = 1;

uint32_t qpn_of(int peer) {
  return static_cast<uint32_t>(kSlot << kLargeSlotBits | static_cast<uint32_t>(peer + 1));
}
uint64_t identity_of(int program) {
  return static_cast<uint64_t>(program) + 0x51;
}

check::Route route(int program, int peer) {
  check::Route route;
  route.source[15] = static_cast<uint8_t>(program + 1);
  route.destination[15] = static_cast<uint8_t>(peer + 1);
  return route;
}

struct World {
  OwnedFd files[kPrograms] = {make_counters_file(), make_counters_file(), make_counters_file()};
  Races programs[kPrograms];
  uint32_t next_psn[kPrograms][kPrograms] = {};
  bool marks_arrive = true;
  // The floors of marks are so much older than they would be: a test takes less time than a network.
  uint64_t older = 1'000'000'000;

  World() {
    for (int i = 0; i < kPrograms; i++) programs[i].open(files[i].get(), kSlot, identity_of(i));
    for (int i = 0; i < kPrograms; i++) {
      for (int peer = 0; peer < kPrograms; peer++) {
        if (peer != i) connect(i, peer);
      }
    }
  }
  void connect(int program, int peer) {
    programs[program].connect(qpn_of(peer), qpn_of(program));
    programs[program].locate(qpn_of(peer), route(program, peer));
    const auto question = programs[program].question(qpn_of(peer), 1);
    if (!question) return;
    programs[program].answered(qpn_of(peer), {.transaction = question->transaction, .host = identity_of(peer)});
  }
  // The mark reaches the peer as one from a host with its own clock.
  void pass(int program, int peer, std::optional<Mark> mark) {
    assert_true(mark.has_value());
    check::MarkBytes bytes;
    mark->sent = dapple::now_ns() + older;
    const auto read = check::read_mark(std::span(bytes).first(check::write_mark(*mark, bytes)));
    assert_true(read.has_value());
    if (marks_arrive) programs[peer].take(qpn_of(program), shifted(*read, program, peer));
  }
  // Stamps of other hosts than the sender's are in their own time already.
  static Mark shifted(Mark mark, int program, int peer) {
    const uint64_t step = kClockStep * static_cast<uint64_t>(program);
    mark.sent += step;
    if (mark.known.floor != 0) mark.known.floor += step;
    if (mark.kind == Mark::Kind::kRequest) mark.stamp += step;
    for (uint32_t i = 0; i < mark.known.count; i++) {
      auto& [name, stamp, learned] = mark.known.entries[i];
      if (check::host_of(name) == check::host_number(identity_of(program))) stamp += step;
      if (check::host_of(name) == check::host_number(identity_of(peer)))
        stamp -= kClockStep * static_cast<uint64_t>(peer);
    }
    return mark;
  }
  // A request that does not go out yet.
  uint32_t post_late(int program, int peer, SendOpcode opcode) {
    const uint32_t psn = next_psn[program][peer]++;
    programs[program].post(
        qpn_of(peer),
        {.id = psn, .opcode = opcode, .is_signaled = true, .is_told = true, .first_psn = psn, .packets = 1}, {});
    return psn;
  }
  void send(int program, int peer, uint32_t psn) {
    pass(program, peer, programs[program].mark_of_request(qpn_of(peer), psn));
  }
  uint32_t post(int program, int peer, SendOpcode opcode) {
    const uint32_t psn = post_late(program, peer, opcode);
    send(program, peer, psn);
    return psn;
  }
  static Races::Arrival packet(int program, int peer, uint32_t psn) { return {qpn_of(program), qpn_of(peer), psn}; }
  // Tells whether the access of the target's memory races.
  bool write(int program) { return arrives(program, post(program, kTarget, SendOpcode::kWrite)); }
  bool arrives(int program, uint32_t psn) {
    return programs[kTarget].access(packet(program, kTarget, psn), kWord, {.kind = Kind::kWrite}).has_value();
  }
  void poll_last(int program, int peer) {
    const uint32_t psn = next_psn[program][peer] - 1;
    (void)programs[program].sent(qpn_of(peer), psn, true);
    programs[program].polled(qpn_of(peer), false, psn);
  }
  // A message, until the peer polls it.
  void tell(int program, int peer) {
    const uint32_t psn = post(program, peer, SendOpcode::kSend);
    programs[peer].received(packet(program, peer, psn), 7);
    programs[peer].polled(qpn_of(program), true, 7);
  }
  // A fetch and add of another word, and its result.
  void add(int program, bool is_answered) {
    const uint32_t psn = post(program, kTarget, SendOpcode::kFetchAdd);
    const Races::Arrival arrival = packet(program, kTarget, psn);
    const Races::Range word = {kWord.begin + 64, kWord.end + 64};
    assert_false(programs[kTarget].access(arrival, word, {.kind = Kind::kAtomic}).has_value());
    programs[kTarget].answer(arrival, word, Kind::kAtomic);
    if (is_answered) pass_answer(program, programs[kTarget].mark_of_result(qpn_of(program), psn, true, 99));
    programs[program].note_result(qpn_of(kTarget), psn, 99);
    poll_last(program, kTarget);
  }
  // Its stamp is the initiator's, as it has come to the target.
  void pass_answer(int program, std::optional<Mark> mark) {
    assert_true(mark.has_value());
    mark->stamp -= kClockStep * static_cast<uint64_t>(program);
    pass(kTarget, program, mark);
  }
};
using Cases = RaceCases<World>;
World*& world = Cases::world;

void access__either_order__names_the_programs(void**) {
  assert_false(world->write(kTwo));
  const Races::Arrival arrival = World::packet(kOne, kTarget, world->post(kOne, kTarget, SendOpcode::kWrite));
  const auto found = world->programs[kTarget].access(arrival, kWord, {.kind = Kind::kWrite});
  assert_true(found.has_value());
  assert_true(found->race.earlier.name == check::name_of(check::host_number(identity_of(kTwo)), qpn_of(kTarget)));
  assert_true(found->programs[0].gid.has_value() && (*found->programs[0].gid)[15] == kTwo + 1);
  assert_true(found->programs[1].gid.has_value() && (*found->programs[1].gid)[15] == kOne + 1);
  assert_int_equal(found->programs[0].process, getpid());
}

// The earlier request's peer is gone, and its queue pair has another peer.
void access__queue_pair_has_another_peer__names_no_program_and_tells_none(void**) {
  assert_false(world->write(kOne));
  Races& target = world->programs[kTarget];
  target.end(qpn_of(kOne));
  target.connect(qpn_of(kOne), qpn_of(kTarget));
  target.locate(qpn_of(kOne), route(kTarget, kPrograms));
  const auto question = target.question(qpn_of(kOne), 1);
  target.answered(qpn_of(kOne), {.transaction = question->transaction, .host = identity_of(kPrograms)});
  assert_true(target.gives_marks(qpn_of(kOne)));
  const uint32_t psn = world->post(kTwo, kTarget, SendOpcode::kWrite);
  const auto found = target.access(World::packet(kTwo, kTarget, psn), kWord, {.kind = Kind::kWrite});
  assert_true(found.has_value());
  assert_int_equal(found->programs[0].process, 0);
  assert_false(found->programs[0].gid.has_value());
  assert_true(found->programs[1].gid.has_value());
  assert_false(target.mark_of_race(qpn_of(kOne)).has_value());
  assert_true(target.mark_of_race(qpn_of(kTwo)).has_value());
}

void access__mark_is_lost__is_unknown(void**) {
  world->marks_arrive = false;
  assert_false(world->write(kOne));
  world->marks_arrive = true;
  assert_false(world->write(kTwo));
  assert_true(world->write(kOne));
}

void access__mark_of_a_message_is_lost__is_in_order(void**) {
  world->older = 0;
  assert_false(world->write(kOne));
  world->poll_last(kOne, kTarget);
  world->marks_arrive = false;
  world->tell(kOne, kTwo);
  world->marks_arrive = true;
  assert_false(world->write(kTwo));
}

// All requests until an event are known, but this one comes to the target after it. Only its completion tells of it.
template <typename Event>
void write_around(Event event) {
  const uint32_t psn = world->post_late(kOne, kTarget, SendOpcode::kWrite);
  event(world->programs[kOne]);
  world->send(kOne, kTarget, psn);
  assert_false(world->arrives(kOne, psn));
  world->poll_last(kOne, kTarget);
  world->tell(kOne, kTwo);
}

void access__completion_after_a_connection__is_in_order(void**) {
  write_around([](Races& one) { one.connect(qpn_of(kPrograms), qpn_of(kPrograms)); });
  assert_false(world->write(kTwo));
}

void access__completion_after_an_unmarked_message__is_in_order(void**) {
  write_around([](Races& one) {
    one.received({qpn_of(kTwo), 0, 0}, 9);
    one.polled(qpn_of(kTwo), true, 9);
  });
  assert_false(world->write(kTwo));
}

void access__no_completion_after_a_connection__races(void**) {
  const uint32_t psn = world->post_late(kOne, kTarget, SendOpcode::kWrite);
  world->programs[kOne].connect(qpn_of(kPrograms), qpn_of(kPrograms));
  world->send(kOne, kTarget, psn);
  assert_false(world->arrives(kOne, psn));
  world->tell(kOne, kTwo);
  assert_true(world->write(kTwo));
}

// The programs agree by other means, whatever their clocks say.
void connect__earlier_requests__are_known(void**) {
  world->older = 0;
  for (const int late : {kTwo, kOne}) {
    assert_false(world->write(late == kTwo ? kOne : kTwo));
    world->connect(late, kTarget);
    world->next_psn[late][kTarget] = 0;
    world->programs[kTarget].connect(qpn_of(late), qpn_of(kTarget));
    world->programs[kTarget].locate(qpn_of(late), route(kTarget, late));
    assert_false(world->write(late));
    world->tell(late, late == kTwo ? kOne : kTwo);
    world->poll_last(late, kTarget);
    world->tell(late, late == kTwo ? kOne : kTwo);
  }
}

void sent__answer_with_a_mark__knows_no_more_than_the_target(void**) {
  world->add(kTwo, true);
  assert_false(world->write(kOne));
  assert_true(world->write(kTwo));
}

void sent__answer_of_a_target_that_knows__is_in_order(void**) {
  assert_false(world->write(kOne));
  world->tell(kOne, kTarget);
  world->add(kTwo, true);
  assert_false(world->write(kTwo));
}

void sent__answer_without_a_mark__knows_all(void**) {
  world->older = 0;
  assert_false(world->write(kOne));
  world->add(kTwo, false);
  assert_false(world->write(kTwo));
}

void sent__race__is_told_by_a_mark(void**) {
  assert_false(world->write(kOne));
  assert_true(world->write(kTwo));
  auto mark = world->programs[kTarget].mark_of_race(qpn_of(kTwo));
  assert_true(mark && mark->kind == Mark::Kind::kRace && mark->extent == qpn_of(kTarget));
  assert_true(world->programs[kTarget].mark_of_race(qpn_of(kOne)).has_value());
  assert_false(world->programs[kTarget].mark_of_race(qpn_of(kTwo)).has_value());
}

// Nobody but the peer's host tells of the peer.
void take__other_hosts__are_ignored(void**) {
  const uint32_t psn = world->next_psn[kOne][kTarget]++;
  Races& one = world->programs[kOne];
  one.post(qpn_of(kTarget), {.opcode = SendOpcode::kWrite, .is_told = true, .first_psn = psn, .packets = 1}, {});
  Mark mark = *one.mark_of_request(qpn_of(kTarget), psn);
  for (const int host : {kTarget, kTwo}) {
    mark.host = check::host_number(identity_of(host));
    world->programs[kTarget].take(qpn_of(kOne), mark);
  }
  world->programs[kTarget].take(qpn_of(kOne) + 77, mark);
  const auto found = world->programs[kTarget].access(World::packet(kOne, kTarget, psn), kWord, {.kind = Kind::kWrite});
  assert_false(found.has_value());
  assert_false(world->write(kTwo));
}

// The other programs of the host can write to the pages that have the requests.
void mark_of_request__impossible_values_in_the_pages__is_none(void**) {
  auto* pages = static_cast<check::RacePages*>(map_races(world->files[kOne].get(), kSlot));
  assert_non_null(pages);
  check::Lane& lane = pages->lanes[qpn_of(kTarget) % check::kLanes];
  const uint32_t psn = world->post_late(kOne, kTarget, SendOpcode::kWrite);
  check::RequestRow row;
  assert_true(lane.request_rows[0].read(row) && row.first_psn == psn && row.packets == 1);
  Races& one = world->programs[kOne];
  assert_true(one.mark_of_request(qpn_of(kTarget), psn).has_value());
  for (const auto& [first_psn, packets] : {std::pair(psn, (1U << 23) + 1), std::pair(psn | 1U << 24, 1U)}) {
    check::RequestRow wrong = row;
    wrong.first_psn = first_psn;
    wrong.packets = packets;
    lane.request_rows[0].write(wrong);
    assert_false(one.mark_of_request(qpn_of(kTarget), psn).has_value());
  }
  lane.request_rows[0].write(row);
  assert_true(one.mark_of_request(qpn_of(kTarget), psn).has_value());
  munmap(pages, kSlotRacesSize);
}

// The host of the address may be another one after all connections have ended, or another device.
void gives_marks__after_the_end_of_all_connections__not_without_an_answer(void**) {
  Races& one = world->programs[kOne];
  const uint32_t first = qpn_of(kTarget), second = qpn_of(kPrograms);
  one.connect(second, 5);
  one.locate(second, route(kOne, kTarget));
  assert_true(one.gives_marks(second));
  one.end(first);
  assert_true(one.gives_marks(second));
  assert_false(one.question(second, UINT64_MAX).has_value());
  one.end(second);
  one.connect(second, 5);
  one.locate(second, route(kOne, kTarget));
  assert_false(one.gives_marks(second));
  assert_true(one.question(second, 1).has_value());
}

// The target has a connection to a program that is gone, and the address is another host's.
void take__another_host_than_the_answer__is_asked_once(void**) {
  Races& target = world->programs[kTarget];
  const uint32_t qpn = qpn_of(kPrograms);
  target.connect(qpn, 5);
  target.locate(qpn, route(kTarget, kOne));
  Mark mark;
  mark.host = check::host_number(identity_of(kPrograms));
  mark.stamp = mark.sent = 9;
  mark.extent = 1;
  target.take(qpn, mark);
  const auto question = target.question(qpn, 1);
  assert_true(question.has_value());
  target.answered(qpn, {.transaction = question->transaction, .host = identity_of(kTwo)});
  target.take(qpn, mark);
  assert_false(target.question(qpn, 1).has_value());
  mark.host = check::host_number(identity_of(kTwo));
  target.take(qpn, mark);
  assert_false(target.access({qpn, 5, 0}, kWord, {.kind = Kind::kWrite}).has_value());
  // The request is known.
  assert_true(world->write(kTwo));
}

void gives_marks__only_to_a_host_that_has_answered(void**) {
  Races& one = world->programs[kOne];
  assert_true(one.gives_marks(qpn_of(kTarget)));
  check::Route other;
  other.destination[0] = 9;
  one.locate(qpn_of(kTarget), other);
  assert_false(one.gives_marks(qpn_of(kTarget)));
  assert_true(one.question(qpn_of(kTarget), 1).has_value());
  assert_false(one.gives_marks(qpn_of(kTarget)));
  // Its own host: the pages have the same.
  other.destination[0] = 10;
  one.locate(qpn_of(kTarget), other);
  const auto question = one.question(qpn_of(kTarget), 1);
  one.answered(qpn_of(kTarget), {.transaction = question->transaction, .host = identity_of(kOne)});
  assert_false(one.gives_marks(qpn_of(kTarget)));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(Cases::access__nothing_told__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__either_order__names_the_programs, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__queue_pair_has_another_peer__names_no_program_and_tells_none,
                                      Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(Cases::access__completion_and_message__is_in_order, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(Cases::access__message_before_completion__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(Cases::access__target_has_seen_and_tells__is_in_order, Cases::begin,
                                      Cases::finish),
      cmocka_unit_test_setup_teardown(access__mark_is_lost__is_unknown, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__mark_of_a_message_is_lost__is_in_order, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__completion_after_a_connection__is_in_order, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(access__completion_after_an_unmarked_message__is_in_order, Cases::begin,
                                      Cases::finish),
      cmocka_unit_test_setup_teardown(access__no_completion_after_a_connection__races, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(connect__earlier_requests__are_known, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(sent__answer_with_a_mark__knows_no_more_than_the_target, Cases::begin,
                                      Cases::finish),
      cmocka_unit_test_setup_teardown(sent__answer_of_a_target_that_knows__is_in_order, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(sent__answer_without_a_mark__knows_all, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(sent__race__is_told_by_a_mark, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(take__other_hosts__are_ignored, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(mark_of_request__impossible_values_in_the_pages__is_none, Cases::begin,
                                      Cases::finish),
      cmocka_unit_test_setup_teardown(take__another_host_than_the_answer__is_asked_once, Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(gives_marks__after_the_end_of_all_connections__not_without_an_answer,
                                      Cases::begin, Cases::finish),
      cmocka_unit_test_setup_teardown(gives_marks__only_to_a_host_that_has_answered, Cases::begin, Cases::finish),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
