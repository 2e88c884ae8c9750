// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/weak_order/weak_memory.hpp"

#include <string.h>

#include <utility>
#include <vector>

#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/weak_order/waits.hpp"
#include "tests/unit/provider/rig.hpp"

using namespace dapple::soft;
using namespace dapple::roce;
using dapple::tests::rig_of;

namespace {

constexpr Accessor kOwner = {7, 0x10011};
constexpr uint64_t kIova = 0x700000000000;
constexpr uint32_t kRights = kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic;

struct Rig {
  alignas(64) std::byte memory[4096] = {};
  MemoryTable table{1};
  std::unique_ptr<WeakMemory> weak = WeakMemory::create(table, 3);
  uint32_t key = 0;

  Rig() { table.add_region({kOwner.domain, memory, sizeof memory, kIova, kRights}, key); }
  Fault write(uint64_t offset, uint64_t size, std::byte value) {
    const std::vector<std::byte> bytes(size, value);
    return weak->write(kOwner, {key, kIova + offset, size}, bytes.data());
  }
  bool has(std::byte value, size_t size) const {
    for (size_t i = 0; i < size; i++) {
      if (memory[i] != value) return false;
    }
    return true;
  }
};

void write__holds__some_words_come_with_place_held(void** state) {
  Rig& rig = rig_of<Rig>(state);
  int held = 0, last_first = 0;
  for (int i = 1; i <= 100; i++) {
    const std::byte value{static_cast<uint8_t>(i)};
    rig.weak->holds(true);
    assert_true(rig.write(0, 256, value) == Fault::kNone);
    const bool is_whole = rig.has(value, 256);
    assert_int_equal(rig.weak->has_held(), !is_whole);
    assert_int_equal(kept_bytes.any(), !is_whole);
    held += is_whole ? 0 : 1;
    last_first += !is_whole && rig.memory[255] == value ? 1 : 0;
    for (size_t word = 0; word < 256; word += 8) {
      for (size_t at = 1; at < 8; at++) assert_true(rig.memory[word + at] == rig.memory[word]);
    }
    rig.weak->place_held();
    assert_true(rig.has(value, 256));
    assert_false(rig.weak->has_held() || kept_bytes.any());
  }
  assert_in_range(held, 50, 100);
  assert_in_range(last_first, 30, 100);
}

void write__does_not_hold__all_bytes_come_at_once(void** state) {
  Rig& rig = rig_of<Rig>(state);
  for (int i = 1; i <= 100; i++) {
    const std::byte value{static_cast<uint8_t>(i)};
    rig.write(0, 256, value);
    assert_true(rig.has(value, 256) && !rig.weak->has_held());
  }
}

void write__more_than_there_is_room_for__nothing_is_lost(void** state) {
  Rig& rig = rig_of<Rig>(state);
  rig.weak->holds(true);
  for (int i = 1; i <= 100; i++) {
    for (uint64_t at = 0; at < sizeof rig.memory; at += 1024) rig.write(at, 1024, std::byte{5});
    if (i % 10 != 0) continue;
    rig.weak->place_held();
    assert_true(rig.has(std::byte{5}, sizeof rig.memory));
  }
}

void write__beyond_the_region__refused_as_a_whole(void** state) {
  Rig& rig = rig_of<Rig>(state);
  rig.weak->holds(true);
  assert_true(rig.write(sizeof rig.memory - 63, 64, std::byte{1}) == Fault::kAccess);
  assert_false(rig.weak->has_held());
  assert_true(rig.has(std::byte{0}, sizeof rig.memory));
}

void place_held__the_region_has_gone__touches_nothing(void** state) {
  Rig& rig = rig_of<Rig>(state);
  rig.weak->holds(true);
  while (!rig.weak->has_held()) rig.write(0, 256, std::byte{1});
  memset(rig.memory, 0, sizeof rig.memory);
  assert_int_equal(rig.table.remove_region(rig.key), 0);
  rig.weak->place_held();
  assert_true(rig.has(std::byte{0}, sizeof rig.memory));
  assert_false(kept_bytes.any());
}

void atomics__nobody_else_changes_the_word__as_ever(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint64_t original = 0;
  for (uint64_t i = 0; i < 20; i++) {
    assert_true(rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original) == Fault::kNone);
    assert_int_equal(original, i);
  }
  for (uint64_t i = 0; i < 20; i++) {
    assert_true(rig.weak->compare_swap(kOwner, rig.key, kIova, 20 + i, 21 + i, original) == Fault::kNone);
    assert_int_equal(original, 20 + i);
    assert_true(rig.weak->compare_swap(kOwner, rig.key, kIova, 1, 0, original) == Fault::kNone);
    assert_int_equal(original, 21 + i);
  }
  assert_true(rig.weak->fetch_add(kOwner, rig.key, kIova + 1, 1, original) == Fault::kUnaligned);
  assert_true(rig.weak->compare_swap(kOwner, rig.key + 1, kIova, 0, 1, original) == Fault::kAccess);
}

void write__after_a_kept_one__comes_after_it(void** state) {
  Rig& rig = rig_of<Rig>(state);
  int both_kept = 0;
  for (int i = 1; i <= 100; i++) {
    const std::byte first{static_cast<uint8_t>(2 * i)}, second{static_cast<uint8_t>(2 * i + 1)};
    rig.weak->holds(true);
    rig.write(0, 8, first);
    if (!rig.weak->has_held()) continue;
    rig.weak->keep_in_order();
    rig.write(8, 8, second);
    assert_true(rig.memory[0] != first && rig.memory[8] != second);
    both_kept++;
    rig.weak->place_held();
    assert_true(rig.memory[0] == first && rig.memory[8] == second);
  }
  assert_in_range(both_kept, 5, 100);
}

void write__after_a_kept_one_without_room__both_come_at_once(void** state) {
  Rig& rig = rig_of<Rig>(state);
  rig.weak->holds(true);
  while (!rig.weak->has_held()) rig.write(0, 8, std::byte{1});
  rig.weak->keep_in_order();
  for (int i = 0; i < 100; i++) {
    rig.write(1024, 1024, std::byte{2});
    if (rig.memory[2047] == std::byte{2}) assert_true(rig.memory[0] == std::byte{1});
  }
  assert_true(rig.memory[0] == std::byte{1} && rig.memory[2047] == std::byte{2});
}

void write__after_an_atomic_that_has_not_stored__comes_after_it(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint64_t original = 0;
  while (!rig.weak->has_held()) rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original);
  rig.weak->holds(true);
  rig.weak->keep_in_order();
  rig.write(8, 8, std::byte{5});
  assert_true(rig.memory[8] == std::byte{0});
  rig.weak->place_held();
  assert_int_equal(*reinterpret_cast<uint64_t*>(rig.memory), original + 1);
  assert_true(rig.memory[8] == std::byte{5} && !rig.weak->has_held());
  // The order has ended, also if another queue pair's atomic has stored.
  const std::unique_ptr<WeakMemory> other = WeakMemory::create(rig.table, 4);
  while (!rig.weak->has_held()) rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original);
  rig.weak->keep_in_order();
  other->fetch_add(kOwner, rig.key, kIova, 1, original);
  rig.weak->place_held();
  rig.weak->holds(false);
  rig.write(8, 8, std::byte{6});
  assert_true(rig.memory[8] == std::byte{6} && !rig.weak->has_held());
}

// Whether a Read's bytes are those of its arrival.
bool is_early(Rig& rig, std::byte before, std::byte after) {
  std::byte got[64];
  memset(rig.memory, static_cast<int>(before), sizeof got);
  assert_true(rig.weak->check_remote(kOwner, {rig.key, kIova, sizeof got}, kRemoteRead) == Fault::kNone);
  memset(rig.memory, static_cast<int>(after), sizeof got);
  for (uint64_t at = 0; at < sizeof got; at += 16) {
    assert_true(rig.weak->read(kOwner, {rig.key, kIova + at, 16}, got + at) == Fault::kNone);
    assert_true(got[at] == got[0]);
  }
  assert_true(got[0] == before || got[0] == after);
  return got[0] == before;
}

void read__some_bytes_are_those_of_the_arrival(void** state) {
  Rig& rig = rig_of<Rig>(state);
  int early = 0;
  for (int i = 1; i <= 100; i++) {
    early += is_early(rig, std::byte{static_cast<uint8_t>(2 * i)}, std::byte{static_cast<uint8_t>(2 * i + 1)}) ? 1 : 0;
  }
  assert_in_range(early, 25, 75);
}

void read__unanswered_ones_are_forgotten__later_ones_have_new_bytes(void** state) {
  Rig& rig = rig_of<Rig>(state);
  std::byte got = {};
  for (int i = 1; i <= 100; i++) {
    rig.memory[0] = std::byte{1};
    rig.weak->check_remote(kOwner, {rig.key, kIova, 1}, kRemoteRead);
    rig.weak->forget_early();
    rig.memory[0] = std::byte{2};
    assert_true(rig.weak->read(kOwner, {rig.key, kIova, 1}, &got) == Fault::kNone && got == std::byte{2});
  }
}

void read__the_region_has_gone_since_the_arrival__refused(void** state) {
  Rig& rig = rig_of<Rig>(state);
  for (int i = 0; i < 100; i++) rig.weak->check_remote(kOwner, {rig.key, kIova, 1}, kRemoteRead);
  assert_int_equal(rig.table.remove_region(rig.key), 0);
  std::byte got = {};
  assert_true(rig.weak->read(kOwner, {rig.key, kIova, 1}, &got) == Fault::kAccess);
}

void atomics__the_cpu_changes_the_word_meanwhile__its_change_is_lost(void** state) {
  Rig& rig = rig_of<Rig>(state);
  int lost = 0;
  for (int i = 0; i < 100; i++) {
    uint64_t original = 0;
    auto* word = reinterpret_cast<uint64_t*>(rig.memory);
    *word = 10;
    rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original);
    assert_int_equal(original, 10);
    assert_int_equal(rig.weak->has_held(), *word == 10);
    assert_int_equal(kept_bytes.any(), *word == 10);
    *word = 20;
    rig.weak->place_held();
    assert_false(rig.weak->has_held() || kept_bytes.any());
    assert_true(*word == 20 || *word == 11);
    lost += *word == 11 ? 1 : 0;
  }
  assert_in_range(lost, 25, 75);
}

void atomics__of_two_queue_pairs__lose_none(void** state) {
  Rig& rig = rig_of<Rig>(state);
  const std::unique_ptr<WeakMemory> other = WeakMemory::create(rig.table, 4);
  for (uint64_t i = 0; i < 200; i += 2) {
    uint64_t original = 0;
    rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original);
    assert_int_equal(original, i);
    other->compare_swap(kOwner, rig.key, kIova, i + 1, i + 2, original);
    assert_int_equal(original, i + 1);
    assert_false(rig.weak->has_held());
  }
}

void atomics__the_region_has_gone__touch_nothing(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint64_t original = 0;
  while (!rig.weak->has_held()) rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original);
  memset(rig.memory, 0, sizeof rig.memory);
  assert_int_equal(rig.table.remove_region(rig.key), 0);
  rig.weak->place_held();
  assert_true(rig.has(std::byte{0}, sizeof rig.memory));
  assert_false(rig.weak->has_held() || kept_bytes.any());
}

void end__a_store_waits__nothing_is_counted(void** state) {
  Rig& rig = rig_of<Rig>(state);
  uint64_t original = 0;
  while (!rig.weak->has_held()) rig.weak->fetch_add(kOwner, rig.key, kIova, 1, original);
  rig.weak.reset();
  assert_false(kept_bytes.any());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      rig_test(write__holds__some_words_come_with_place_held, Rig),
      rig_test(write__does_not_hold__all_bytes_come_at_once, Rig),
      rig_test(write__more_than_there_is_room_for__nothing_is_lost, Rig),
      rig_test(write__beyond_the_region__refused_as_a_whole, Rig),
      rig_test(place_held__the_region_has_gone__touches_nothing, Rig),
      rig_test(atomics__nobody_else_changes_the_word__as_ever, Rig),
      rig_test(write__after_a_kept_one__comes_after_it, Rig),
      rig_test(write__after_a_kept_one_without_room__both_come_at_once, Rig),
      rig_test(write__after_an_atomic_that_has_not_stored__comes_after_it, Rig),
      rig_test(read__some_bytes_are_those_of_the_arrival, Rig),
      rig_test(read__unanswered_ones_are_forgotten__later_ones_have_new_bytes, Rig),
      rig_test(read__the_region_has_gone_since_the_arrival__refused, Rig),
      rig_test(atomics__the_cpu_changes_the_word_meanwhile__its_change_is_lost, Rig),
      rig_test(atomics__of_two_queue_pairs__lose_none, Rig),
      rig_test(atomics__the_region_has_gone__touch_nothing, Rig),
      rig_test(end__a_store_waits__nothing_is_counted, Rig),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
