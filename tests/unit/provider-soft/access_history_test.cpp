// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/access_history.hpp"

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::roce::SendOpcode;
using dapple::soft::check::AccessHistory;
using dapple::soft::check::KnownRequests;
using dapple::soft::check::NotedAccess;
using Kind = NotedAccess::Kind;

const KnownRequests nothing;

NotedAccess by(uint32_t qpn, Kind kind, uint64_t stamp = 10) {
  return {.name = qpn, .stamp = stamp, .kind = kind, .opcode = SendOpcode::kWrite, .arrived = stamp};
}

bool races(AccessHistory& history, uintptr_t begin, uintptr_t end, const NotedAccess& access,
           const KnownRequests& known = nothing) {
  return history.add(begin, end, access, known).has_value();
}

void add__writes_of_two__race(void**) {
  AccessHistory history;
  assert_false(races(history, 0, 16, by(1, Kind::kWrite)));
  const auto race = history.add(8, 24, by(2, Kind::kWrite), nothing);
  assert_true(race.has_value());
  assert_int_equal(race->earlier.name, 1);
  assert_int_equal(race->begin, 8);
  assert_int_equal(race->end, 16);
}

void add__bytes_beside__do_not_race(void**) {
  AccessHistory history;
  races(history, 8, 16, by(1, Kind::kWrite));
  assert_false(races(history, 0, 8, by(2, Kind::kWrite)));
  assert_false(races(history, 16, 24, by(2, Kind::kWrite)));
}

void add__kinds__that_race(void**) {
  const struct {
    Kind one, other;
    uintptr_t size;
    bool is_race;
  } cases[] = {
      {Kind::kRead, Kind::kRead, 8, false},     {Kind::kRead, Kind::kWrite, 8, true},
      {Kind::kAtomic, Kind::kAtomic, 8, false}, {Kind::kAtomic, Kind::kWrite, 8, true},
      {Kind::kAtomic, Kind::kRead, 8, false},   {Kind::kAtomic, Kind::kRead, 16, true},
  };
  for (const auto& one : cases) {
    AccessHistory history;
    races(history, 0, 8, by(1, one.one));
    assert_int_equal(races(history, 0, one.size, by(2, one.other)), one.is_race);
    AccessHistory other;
    races(other, 0, one.size, by(1, one.other));
    assert_int_equal(races(other, 0, 8, by(2, one.one)), one.is_race);
  }
}

void add__known_request__does_not_race(void**) {
  AccessHistory history;
  races(history, 0, 8, by(1, Kind::kWrite, 10));
  KnownRequests known;
  known.add(1, 9, 9);
  assert_true(races(history, 0, 8, by(2, Kind::kRead), known));
  known.add(1, 10, 10);
  assert_false(races(history, 0, 8, by(3, Kind::kRead), known));
}

// A Write that knows the others stands for them.
void add__after_known_ones__later_ones_need_only_the_last(void**) {
  AccessHistory history;
  KnownRequests known;
  races(history, 0, 8, by(1, Kind::kWrite, 10));
  known.add(1, 10, 10);
  assert_false(races(history, 0, 8, by(2, Kind::kWrite, 20), known));
  KnownRequests last;
  last.add(2, 20, 20);
  assert_false(races(history, 0, 8, by(3, Kind::kWrite, 30), last));
}

void add__reads_before_a_write__all_count(void**) {
  AccessHistory history;
  KnownRequests known;
  races(history, 0, 8, by(1, Kind::kRead, 10));
  races(history, 0, 8, by(2, Kind::kRead, 10));
  known.add(2, 10, 10);
  assert_true(races(history, 0, 8, by(3, Kind::kWrite), known));
}

void add__own_requests__race_with_later_ones_of_peers(void**) {
  AccessHistory history;
  races(history, 0, 8, by(1, Kind::kWrite));
  NotedAccess own = by(2, Kind::kRead);
  own.is_own = true;
  assert_false(races(history, 0, 8, own));
  KnownRequests known;
  known.add(1, 10, 10);
  assert_true(races(history, 0, 8, by(3, Kind::kWrite), known));
}

void add__messages__race_with_writes_alone(void**) {
  AccessHistory history;
  NotedAccess own = by(1, Kind::kRead), message = by(2, Kind::kWrite), other = by(3, Kind::kWrite);
  own.is_own = true;
  message.opcode = other.opcode = SendOpcode::kSend;
  races(history, 0, 8, own);
  assert_false(races(history, 0, 8, message));
  assert_false(races(history, 0, 8, other));
  assert_true(races(history, 0, 8, by(4, Kind::kWrite)));
}

void add__posted_after_arrival__does_not_race(void**) {
  AccessHistory history;
  races(history, 0, 8, by(1, Kind::kWrite, 10));
  assert_false(history.add(0, 8, by(2, Kind::kWrite), nothing, 11).has_value());
  AccessHistory other;
  races(other, 0, 8, by(1, Kind::kWrite, 10));
  assert_true(other.add(0, 8, by(2, Kind::kWrite), nothing, 10).has_value());
}

void add__packets_of_one_request__are_one(void**) {
  AccessHistory history;
  for (uintptr_t at = 0; at < 64; at += 8) assert_false(races(history, at, at + 8, by(1, Kind::kWrite)));
  const auto race = history.add(0, 64, by(2, Kind::kWrite), nothing);
  assert_true(race.has_value() && race->end == 64);
}

void forget__middle__leaves_the_rest(void**) {
  AccessHistory history;
  races(history, 0, 24, by(1, Kind::kWrite));
  history.forget(8, 16);
  assert_false(races(history, 8, 16, by(2, Kind::kWrite)));
  assert_true(races(history, 0, 8, by(2, Kind::kWrite)));
  assert_true(races(history, 23, 24, by(2, Kind::kWrite)));
}

void may_have_write__tells_of_writes(void**) {
  AccessHistory history;
  races(history, 0, 8, by(1, Kind::kAtomic));
  assert_false(history.may_have_write(0, 8));
  races(history, 0, 64, by(1, Kind::kWrite));
  assert_true(history.may_have_write(60, 68));
  assert_false(history.may_have_write(64, 72));
}

void add__too_many_pieces__forgets_some(void**) {
  AccessHistory history;
  for (uintptr_t i = 0; i <= AccessHistory::kMaxPieces; i++) races(history, 16 * i, 16 * i + 8, by(1, Kind::kWrite));
  assert_true(history.may_have_write(8, 16));
  assert_false(races(history, 16, 24, by(2, Kind::kRead)));
  assert_true(races(history, 16 * AccessHistory::kMaxPieces, 16 * AccessHistory::kMaxPieces + 8, by(2, Kind::kRead)));
}

void add__too_many_accesses__forgets_the_oldest(void**) {
  AccessHistory history;
  for (uint32_t i = 1; i <= 2 * AccessHistory::kMaxAccesses; i++) races(history, 0, 8, by(i, Kind::kRead));
  KnownRequests known;
  for (uint32_t i = 1; i < 2 * AccessHistory::kMaxAccesses; i++) known.add(i, 10, 10);
  const auto race = history.add(0, 8, by(100, Kind::kWrite), known);
  assert_true(race.has_value());
  assert_int_equal(race->earlier.name, 2 * AccessHistory::kMaxAccesses);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(add__writes_of_two__race),
      cmocka_unit_test(add__bytes_beside__do_not_race),
      cmocka_unit_test(add__kinds__that_race),
      cmocka_unit_test(add__known_request__does_not_race),
      cmocka_unit_test(add__after_known_ones__later_ones_need_only_the_last),
      cmocka_unit_test(add__reads_before_a_write__all_count),
      cmocka_unit_test(add__own_requests__race_with_later_ones_of_peers),
      cmocka_unit_test(add__messages__race_with_writes_alone),
      cmocka_unit_test(add__posted_after_arrival__does_not_race),
      cmocka_unit_test(add__packets_of_one_request__are_one),
      cmocka_unit_test(forget__middle__leaves_the_rest),
      cmocka_unit_test(may_have_write__tells_of_writes),
      cmocka_unit_test(add__too_many_pieces__forgets_some),
      cmocka_unit_test(add__too_many_accesses__forgets_the_oldest),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
