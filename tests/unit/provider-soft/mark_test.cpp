// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/races/mark.hpp"

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft;
using namespace dapple::soft::check;

constexpr uint64_t kOwn = 0x11, kSender = 0x22, kThird = 0x33;

Mark sample() {
  Mark mark;
  mark.kind = Mark::Kind::kRequest;
  mark.process = 4711;
  mark.host = kSender;
  mark.sent = 5'000'000'000;
  mark.stamp = 4'999'000'000;
  mark.psn = 0xFFFFFE;
  mark.extent = 3;
  mark.other_process = -1;
  mark.known.floor = 1'000'000'000;
  mark.known.add(name_of(kThisHost, 7), 4'000'000'000, 4'500'000'000);
  mark.known.add(name_of(kOwn, 8), 80, 4'500'000'000);
  mark.known.add(name_of(kThird, 9), 90, 4'500'000'000);
  return mark;
}

std::span<const std::byte> written(const Mark& mark, MarkBytes& bytes) {
  return {bytes.data(), write_mark(mark, bytes)};
}

void read_mark__written_one__is_the_same_and_names_its_host(void**) {
  const Mark mark = sample();
  MarkBytes bytes;
  const auto read = read_mark(written(mark, bytes));
  assert_true(read.has_value());
  assert_true(read->kind == mark.kind && read->process == 4711 && read->other_process == -1 && read->host == kSender);
  assert_true(read->sent == mark.sent && read->stamp == mark.stamp && read->psn == mark.psn && read->extent == 3);
  assert_int_equal(read->known.floor, mark.known.floor);
  assert_int_equal(read->known.count, 3);
  assert_true(read->known.entries[0].name == name_of(kSender, 7));
  assert_true(read->known.entries[2].name == name_of(kThird, 9) && read->known.entries[2].stamp == 90);
}

void read_mark__most_entries__fits(void**) {
  Mark mark = sample();
  mark.known = {};
  for (uint32_t i = 0; i < KnownRequests::kMax; i++) mark.known.add(name_of(kThird, i + 2), i + 1, 1);
  MarkBytes bytes;
  assert_int_equal(write_mark(mark, bytes), kMaxMarkBytes);
  assert_true(read_mark(bytes).has_value());
}

// Each other length and each version.
void read_mark__cut_or_longer_or_of_another_version__is_none(void**) {
  MarkBytes bytes = {};
  const size_t size = written(sample(), bytes).size();
  for (size_t other = 0; other <= bytes.size(); other++)
    assert_int_equal(read_mark(std::span(bytes).first(other)).has_value(), other == size);
  bytes[3] ^= std::byte{3};
  assert_false(read_mark(std::span(bytes).first(size)).has_value());
}

void read_mark__impossible_values__is_none(void**) {
  struct {
    size_t at;
    uint8_t value;
  } constexpr kWrong[] = {
      {4, 0},  {4, 4}, {5, 33}, {5, 255},  // kind, count
      {16, 1},                             // host: more than 40 bits
      {40, 1},                             // psn: more than 24 bits
      {44, 1},                             // packets
      {56, 0},                             // a name, below
  };
  MarkBytes bytes;
  const size_t size = written(sample(), bytes).size();
  for (const auto& wrong : kWrong) {
    MarkBytes changed = bytes;
    changed[wrong.at] = std::byte{wrong.value};
    if (wrong.at == 56) std::fill_n(changed.begin() + 56, 5, std::byte{0});
    assert_false(read_mark(std::span(changed).first(size)).has_value());
  }
  for (const size_t field : {size_t{16}, size_t{32}}) {  // no host, no stamp
    MarkBytes changed = bytes;
    std::fill_n(changed.begin() + static_cast<long>(field), 8, std::byte{0});
    assert_false(read_mark(std::span(changed).first(size)).has_value());
  }
}

// A time that is too late hides a race; one that is too early would make one.
void take_over__floor__is_not_too_early_by_any_clock(void**) {
  for (const uint64_t now : {uint64_t{10}, uint64_t{4'000'000'000}, uint64_t{9'000'000'000'000}}) {
    Mark mark = sample();
    take_over(mark, kOwn, now, 0);
    const uint64_t age = 4'000'000'000;
    assert_true(mark.known.floor <= now && mark.known.floor + age >= now);
    // The clocks drift.
    assert_true(now < age || mark.known.floor + age - now >= age / 1000);
  }
  Mark mark = sample();
  mark.known.floor = mark.sent + 1;
  take_over(mark, kOwn, 77, 0);
  assert_int_equal(mark.known.floor, 77);
  // The clock here has stood still, and the sender's has not.
  mark = sample();
  take_over(mark, kOwn, 9'000'000'000, 3'500'000'000);
  assert_true(mark.known.floor >= 8'500'000'000 && mark.known.floor <= 9'000'000'000);
  mark.known.floor = 0;
  take_over(mark, kOwn, 99, 0);
  assert_int_equal(mark.known.floor, 0);
}

void take_over__names_of_this_host__are_short(void**) {
  Mark mark = sample();
  MarkBytes bytes;
  mark = read_mark(written(mark, bytes)).value();
  take_over(mark, kOwn, 77, 0);
  for (uint32_t i = 0; i < mark.known.count; i++) assert_int_equal(mark.known.entries[i].learned, 77);
  assert_true(mark.known.entries[0].name == name_of(kSender, 7));
  assert_true(mark.known.entries[1].name == name_of(kThisHost, 8));
  assert_true(mark.known.entries[2].name == name_of(kThird, 9));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(read_mark__written_one__is_the_same_and_names_its_host),
      cmocka_unit_test(read_mark__most_entries__fits),
      cmocka_unit_test(read_mark__cut_or_longer_or_of_another_version__is_none),
      cmocka_unit_test(read_mark__impossible_values__is_none),
      cmocka_unit_test(take_over__floor__is_not_too_early_by_any_clock),
      cmocka_unit_test(take_over__names_of_this_host__are_short),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
