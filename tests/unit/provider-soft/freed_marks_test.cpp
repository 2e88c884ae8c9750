// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/lent/freed_marks.hpp"

#include <vector>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::soft::HeapInterest;
using dapple::soft::check::FreedMarks;
using dapple::soft::check::Stack;
using How = FreedMarks::How;

constexpr uint32_t kKey = 7, kOtherKey = 8;
constexpr uint64_t kStart = 0x10000;  // the keys' address of the first byte
constexpr size_t kSize = 1000;

const char memory[kSize] = {};
const int device = 0;

class Rig {
 public:
  Rig() { add(kKey); }

  void add(uint32_t key, size_t at = 0, size_t size = kSize) {
    marks.add(&device, key, memory + at, size, kStart + at);
  }
  void mark(size_t at, size_t size, How how = How::kFreed) { marks.mark(memory + at, size, how, Stack::here()); }
  void take(size_t at, size_t size) { marks.take(memory + at, size); }
  bool finds(size_t at, size_t size, uint32_t key = kKey) {
    return marks.find(&device, key, kStart + at, size).has_value();
  }
  void remove(uint32_t key) { marks.remove(&device, key, marks.number_of(&device, key)); }
  bool is_free(size_t at) { return finds(at, 1); }

  HeapInterest interest;
  FreedMarks marks{interest};
};

void find__bytes_of_mark__gives_mark(void**) {
  Rig rig;
  rig.mark(100, 50, How::kUnmapped);
  const auto mark = rig.marks.find(&device, kKey, kStart + 120, 1);
  assert_true(mark.has_value());
  assert_ptr_equal(mark->memory, memory + 100);
  assert_int_equal(mark->size, 50);
  assert_true(mark->how == How::kUnmapped);
  assert_true(mark->stack.count > 0);
}

void find__bytes_beside_mark__finds_nothing(void**) {
  Rig rig;
  rig.mark(100, 50);
  assert_false(rig.finds(99, 1));
  assert_true(rig.finds(99, 2));
  assert_true(rig.finds(149, 10));
  assert_false(rig.finds(150, 10));
}

void mark__two_registrations__marks_both(void**) {
  Rig rig;
  rig.add(kOtherKey, 120, 20);
  rig.mark(100, 50);
  assert_true(rig.finds(125, 1));
  assert_true(rig.finds(125, 1, kOtherKey));
}

void mark__more_than_the_registration__marks_its_part(void**) {
  Rig rig;
  rig.add(kOtherKey, 500, 100);
  rig.mark(0, kSize);
  const auto mark = rig.marks.find(&device, kOtherKey, kStart + 500, 1);
  assert_true(mark.has_value());
  assert_ptr_equal(mark->memory, memory + 500);
  assert_int_equal(mark->size, 100);
}

void add__marked_memory__begins_without_marks(void**) {
  Rig rig;
  rig.mark(100, 50, How::kUnmapped);
  rig.add(kOtherKey);
  assert_false(rig.finds(100, 50, kOtherKey));
  assert_true(rig.finds(100, 50));
}

void add__same_key__begins_without_marks(void**) {
  Rig rig;
  rig.mark(100, 50);
  rig.add(kKey);
  assert_false(rig.finds(100, 50));
  assert_false(rig.interest.taken.load());
}

void take__middle_of_mark__leaves_both_ends(void**) {
  Rig rig;
  rig.mark(100, 50);
  rig.take(110, 10);
  assert_true(rig.is_free(109));
  assert_false(rig.is_free(110));
  assert_false(rig.is_free(119));
  assert_true(rig.is_free(120));
}

void take__several_marks__takes_all_of_them(void**) {
  Rig rig;
  rig.mark(100, 50);
  rig.mark(150, 50);
  rig.mark(300, 50);
  rig.take(140, 180);
  assert_true(rig.is_free(139));
  assert_false(rig.finds(140, 180));
  assert_true(rig.is_free(320));
}

void take__unmapped_memory__stays_marked(void**) {
  Rig rig;
  rig.mark(100, 50, How::kUnmapped);
  rig.mark(150, 50);
  rig.take(100, 100);
  assert_true(rig.is_free(149));
  assert_false(rig.is_free(150));
}

void unmark__unmapped_memory__has_no_mark(void**) {
  Rig rig;
  rig.mark(100, 50, How::kUnmapped);
  rig.marks.unmark(memory + 100, 50);
  assert_false(rig.finds(100, 50));
}

void interest__follows_registrations_and_marks(void**) {
  Rig rig;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  rig.remove(kKey);
  assert_int_equal(rig.interest.end.load(), 0);
  rig.add(kKey, 100, 100);
  rig.add(kOtherKey, 500, 100);
  assert_int_equal(rig.interest.begin.load(), begin + 100);
  assert_int_equal(rig.interest.end.load(), begin + 600);
  assert_false(rig.interest.taken.load());
  rig.mark(550, 10);
  assert_true(rig.interest.taken.load());
  rig.remove(kOtherKey);
  assert_int_equal(rig.interest.end.load(), begin + 200);
  assert_false(rig.interest.taken.load());
}

void is_registered__long_region_before__is_found(void**) {
  Rig rig;
  rig.add(kOtherKey, 900, 10);
  assert_true(rig.marks.is_registered(memory + 950, 1));
  rig.remove(kKey);
  assert_false(rig.marks.is_registered(memory + 950, 1));
  assert_true(rig.marks.is_registered(memory + 850, 100));
}

void mark__too_many__adds_none(void**) {
  HeapInterest interest;
  FreedMarks marks(interest);
  const std::vector<char> large(2 * (FreedMarks::kMax + 1));
  marks.add(&device, kKey, large.data(), large.size(), 0);
  for (size_t i = 0; i <= FreedMarks::kMax; i++) marks.mark(&large[2 * i], 1, How::kFreed, Stack());
  assert_true(marks.find(&device, kKey, 2 * (FreedMarks::kMax - 1), 1).has_value());
  assert_false(marks.find(&device, kKey, 2 * FreedMarks::kMax, 1).has_value());
  marks.take(&large[0], 1);
  marks.mark(&large[2 * FreedMarks::kMax], 1, How::kFreed, Stack());
  assert_true(marks.find(&device, kKey, 2 * FreedMarks::kMax, 1).has_value());
}

void remove__key_of_a_later_registration__keeps_it(void**) {
  Rig rig;
  const uint64_t before = rig.marks.number_of(&device, kKey);
  rig.add(kKey);
  rig.mark(100, 50);
  rig.marks.remove(&device, kKey, before);
  assert_true(rig.is_free(100));
  rig.remove(kKey);
  assert_false(rig.is_free(100));
  assert_int_equal(rig.marks.number_of(&device, kKey), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(remove__key_of_a_later_registration__keeps_it),
      cmocka_unit_test(find__bytes_of_mark__gives_mark),
      cmocka_unit_test(find__bytes_beside_mark__finds_nothing),
      cmocka_unit_test(mark__two_registrations__marks_both),
      cmocka_unit_test(mark__more_than_the_registration__marks_its_part),
      cmocka_unit_test(add__marked_memory__begins_without_marks),
      cmocka_unit_test(add__same_key__begins_without_marks),
      cmocka_unit_test(take__middle_of_mark__leaves_both_ends),
      cmocka_unit_test(take__several_marks__takes_all_of_them),
      cmocka_unit_test(take__unmapped_memory__stays_marked),
      cmocka_unit_test(unmark__unmapped_memory__has_no_mark),
      cmocka_unit_test(interest__follows_registrations_and_marks),
      cmocka_unit_test(is_registered__long_region_before__is_found),
      cmocka_unit_test(mark__too_many__adds_none),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
