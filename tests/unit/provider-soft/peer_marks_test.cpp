// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/peer_marks.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft::check;

constexpr uint64_t kHost = 5;

Mark request(uint64_t stamp, uint32_t psn, uint32_t packets = 1) {
  Mark mark;
  mark.kind = Mark::Kind::kRequest;
  mark.host = kHost;
  mark.process = 77;
  mark.stamp = stamp;
  mark.psn = psn;
  mark.extent = packets;
  return mark;
}

Mark answer(uint64_t stamp, uint32_t psn, uint32_t check, uint64_t known) {
  Mark mark = request(stamp, psn, check);
  mark.kind = Mark::Kind::kAnswer;
  mark.known.add(9, known, known);
  return mark;
}

void request__each_packet__is_found_around_the_circle(void**) {
  PeerMarks marks;
  assert_true(marks.host() == kThisHost);
  marks.add(request(10, 0xFFFFFE, 3), 100);
  marks.add(request(20, 1), 200);
  assert_true(marks.host() == kHost && marks.process() == 77 && marks.last_stamp() == 20);
  for (const uint32_t psn : {0xFFFFFEU, 0xFFFFFFU, 0U}) assert_int_equal(marks.request(psn)->stamp, 10);
  assert_int_equal(marks.request(1)->since, 200);
}

// The mark that came first was there before the request's end.
void add__second_copy__changes_nothing(void**) {
  PeerMarks marks;
  marks.add(request(10, 5), 100);
  marks.add(request(10, 5), 900);
  assert_int_equal(marks.request(5)->since, 100);
  marks.add(request(9, 4), 900);
  assert_false(marks.request(4).has_value());
}

void add__another_host__is_ignored(void**) {
  PeerMarks marks;
  marks.add(request(10, 5), 100);
  Mark other = request(20, 6);
  other.host = kHost + 1;
  marks.add(other, 100);
  assert_false(marks.request(6).has_value());
}

// A PSN comes again after 2^24 packets. The old mark would tell of less than the program knows.
void request__without_a_mark__forgets_earlier_ones(void**) {
  PeerMarks marks;
  marks.add(request(10, 5), 100);
  marks.add(request(30, 8), 100);
  assert_false(marks.request(6).has_value());
  assert_false(marks.request(5).has_value());
  assert_true(marks.request(8).has_value());
}

// Sixteen requests of 2^20 packets go once around the circle.
void add__long_requests__are_forgotten_before_their_psns_come_again(void**) {
  constexpr uint32_t kLong = 1 << 20;
  PeerMarks marks;
  for (uint32_t i = 0; i < 15; i++) marks.add(request(i + 1, i * kLong, kLong), 100);
  assert_int_equal(marks.request(14 * kLong + 5)->stamp, 15);
  assert_int_equal(marks.request(13 * kLong + 5)->stamp, 14);
  // The mark of the sixteenth is lost, and the next packets are those of the seventeenth.
  assert_false(marks.request(5).has_value());
}

void add__flood__is_bounded(void**) {
  PeerMarks marks;
  for (uint32_t i = 0; i < 10'000; i++) {
    marks.add(request(i + 1, i), 1);
    marks.add(answer(i + 1, i, 1, 1), 1);
    Mark race = request(i + 1, 0);
    race.kind = Mark::Kind::kRace;
    marks.add(race, 1);
    marks.note_result(i + 1, i, i, 1);
  }
  assert_true(marks.request(9'999 - (PeerMarks::kMaxRequests - 1)).has_value());
  assert_false(marks.request(9'999 - PeerMarks::kMaxRequests).has_value());
  assert_int_equal(marks.take_races().size(), kRaceRows);
  assert_true(marks.take_races().empty());
}

void take_answer__each_packet_has_a_mark__knows_all_of_them(void**) {
  PeerMarks marks;
  marks.add(answer(10, 6, 111, 3), 1);
  marks.add(answer(10, 7, 222, 4), 1);
  marks.note_result(10, 6, 6, 111);
  marks.note_result(10, 6, 7, 222);
  const auto known = marks.take_answer(10, 2);
  assert_true(known && known->has(9, 4, 4) && !known->has(9, 5, 5));
  assert_false(marks.take_answer(10, 2).has_value());
}

void take_answer__a_packet_without_a_mark__is_none(void**) {
  PeerMarks marks;
  marks.add(answer(10, 6, 111, 3), 1);
  marks.note_result(10, 6, 6, 111);
  assert_false(marks.take_answer(10, 2).has_value());
  // Lost, of another request, of the bytes that were there before, after the packet.
  for (const Mark& mark : {request(99, 99), answer(20, 6, 111, 3), answer(10, 6, 112, 3)}) {
    marks = {};
    marks.add(mark, 1);
    marks.note_result(10, 6, 6, 111);
    marks.add(answer(10, 6, 111, 3), 1);
    assert_false(marks.take_answer(10, 1).has_value());
  }
}

// The target has read twice, since the first answer seemed to be lost. The program has the bytes of one of them.
void take_answer__two_answers__knows_both(void**) {
  PeerMarks marks;
  marks.add(answer(10, 6, 111, 3), 1);
  marks.add(answer(10, 6, 222, 8), 1);
  marks.note_result(10, 6, 6, 222);
  marks.note_result(10, 6, 6, 111);
  assert_true(marks.take_answer(10, 1)->has(9, 8, 8));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(request__each_packet__is_found_around_the_circle),
      cmocka_unit_test(add__second_copy__changes_nothing),
      cmocka_unit_test(add__another_host__is_ignored),
      cmocka_unit_test(request__without_a_mark__forgets_earlier_ones),
      cmocka_unit_test(add__long_requests__are_forgotten_before_their_psns_come_again),
      cmocka_unit_test(add__flood__is_bounded),
      cmocka_unit_test(take_answer__each_packet_has_a_mark__knows_all_of_them),
      cmocka_unit_test(take_answer__a_packet_without_a_mark__is_none),
      cmocka_unit_test(take_answer__two_answers__knows_both),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
