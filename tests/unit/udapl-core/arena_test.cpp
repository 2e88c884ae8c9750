// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/arena.hpp"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

const int kLiveTable = 0;
const int kDeadTable = 0;

struct Thing : Object {
  static constexpr Kind kKind = Kind::kPz;
  explicit Thing(Kind kind = Kind::kPz) : Object(&kLiveTable, kind, nullptr) { ++alive; }
  struct Fail {};
  explicit Thing(Fail) : Object(&kLiveTable, Kind::kPz, nullptr) { throw std::runtime_error("no"); }
  ~Thing() { --alive; }
  uint64_t value = 0;
  static inline int alive = 0;
};

const void* table_of(const void* handle) {
  return *static_cast<const void* const*>(handle);
}

// A pointer the compiler knows nothing about.
const void* wild(const volatile void* pointer) {
  asm("" : "+r"(pointer));
  return const_cast<const void*>(pointer);
}

void arena_find__what_is_no_handle_at_all() {
  Arena<Thing> things;
  Thing* thing = nullptr;
  int elsewhere = 0;
  // In an arena without a single object, and in one that has some.
  for (int round = 0; round < 2; ++round) {
    CHECK(!things.find(wild(nullptr)));
    CHECK(!things.find(wild(&elsewhere)));
    for (uintptr_t number : {uintptr_t{1}, uintptr_t{2}, uintptr_t{64}, uintptr_t{4096}, UINTPTR_MAX}) {
      CHECK(!things.find(wild(reinterpret_cast<const void*>(number))));
    }
    if (!thing) thing = things.create();
  }
  things.destroy(thing, &kDeadTable);
}

void arena_find__live_objects_by_kind() {
  Arena<Thing> things;
  Thing* thing = things.create();
  Thing* other = things.create(Kind::kLmr);
  CHECK_EQUAL(things.find(thing), thing);
  CHECK(!things.find(other));
  things.destroy(other, &kDeadTable);
  things.destroy(thing, &kDeadTable);
}

void arena_find__interior_pointers() {
  Arena<Thing> things;
  Thing* thing = things.create();
  const auto* bytes = reinterpret_cast<const std::byte*>(thing);
  for (size_t offset = 1; offset < sizeof(Thing); ++offset) CHECK(!things.find(bytes + offset));
  CHECK(!things.find(bytes - 1));
  things.destroy(thing, &kDeadTable);
}

void arena_find__slots_never_used() {
  Arena<Thing> things;
  Thing* first = things.create();
  Thing* second = things.create();
  const auto stride = reinterpret_cast<uintptr_t>(second) - reinterpret_cast<uintptr_t>(first);
  const auto* third = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(second) + stride);
  CHECK(!things.find(third));
  things.destroy(first, &kDeadTable);
  things.destroy(second, &kDeadTable);
}

void arena_destroy__leaves_the_dead_table() {
  Arena<Thing> things;
  Thing* thing = things.create();
  CHECK_EQUAL(table_of(thing), &kLiveTable);
  const void* stale = thing;
  things.destroy(thing, &kDeadTable);
  CHECK_EQUAL(Thing::alive, 0);
  CHECK(!things.find(stale));
  CHECK_EQUAL(table_of(stale), &kDeadTable);
}

void arena_create__reuses_the_longest_free_slot() {
  Arena<Thing> things;
  std::vector<Thing*> all;
  for (int i = 0; i < 32; ++i) all.push_back(things.create());
  for (int i : {7, 3, 30}) things.destroy(all[static_cast<size_t>(i)], &kDeadTable);
  CHECK_EQUAL(things.create(), all[7]);
  CHECK_EQUAL(things.create(), all[3]);
  CHECK_EQUAL(things.create(), all[30]);
  for (Thing* thing : all) things.destroy(thing, &kDeadTable);
}

void arena_create__a_slot_freed_is_taken_last() {
  Arena<Thing> things;
  Thing* thing = things.create();
  things.destroy(thing, &kDeadTable);
  for (int i = 0; i < 31; ++i) CHECK(things.create() != thing);
  CHECK_EQUAL(things.create(), thing);
  things.for_each([](Thing&) { --Thing::alive; });
}

void arena_create__grows_and_never_moves() {
  Arena<Thing> things;
  std::vector<Thing*> all;
  for (uint64_t i = 0; i < 1000; ++i) {
    all.push_back(things.create());
    all.back()->value = i;
  }
  CHECK_EQUAL(std::set<Thing*>(all.begin(), all.end()).size(), 1000);
  for (uint64_t i = 0; i < 1000; ++i) {
    CHECK_EQUAL(things.find(all[i]), all[i]);
    CHECK_EQUAL(all[i]->value, i);
  }
  for (Thing* thing : all) things.destroy(thing, &kDeadTable);
  for (Thing* thing : all) CHECK(!things.find(thing));
}

void arena_create__constructor_throws_nothing_changes() {
  Arena<Thing> things;
  Thing* stale = things.create();
  things.destroy(stale, &kDeadTable);
  // Each slot is used in turn, including the stale handle's.
  for (int i = 0; i < 32; ++i) {
    bool thrown = false;
    try {
      things.create(Thing::Fail{});
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    CHECK(thrown);
  }
  CHECK(!things.find(stale));
  CHECK_EQUAL(table_of(stale), &kDeadTable);
  int seen = 0;
  things.for_each([&seen](Thing&) { ++seen; });
  CHECK_EQUAL(seen, 0);
}

void arena_for_each__live_objects_of_the_kind_only() {
  Arena<Thing> things;
  std::vector<Thing*> all;
  for (int i = 0; i < 100; ++i) all.push_back(things.create(i % 2 ? Kind::kPz : Kind::kLmr));
  for (size_t i = 0; i < 100; i += 4) things.destroy(all[i], &kDeadTable);
  int pzs = 0;
  things.for_each([&pzs](Thing&) { ++pzs; });
  CHECK_EQUAL(pzs, 50);
  Thing::alive = 0;
}

struct Quiet : Object {
  static constexpr Kind kKind = Kind::kPz;
  Quiet() : Object(&kLiveTable, Kind::kPz, nullptr) {}
  int owner = 0;
};

void arena__threads() {
  Arena<Quiet> things;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&things, &wrong, t] {
      for (int i = 0; i < 2000; ++i) {
        Quiet* mine = things.create();
        mine->owner = t;
        if (things.find(mine) != mine) ++wrong;
        if (mine->owner != t) ++wrong;
        things.destroy(mine, &kDeadTable);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQUAL(wrong.load(), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(arena_find__what_is_no_handle_at_all),
      TEST(arena_find__live_objects_by_kind),
      TEST(arena_find__interior_pointers),
      TEST(arena_find__slots_never_used),
      TEST(arena_destroy__leaves_the_dead_table),
      TEST(arena_create__reuses_the_longest_free_slot),
      TEST(arena_create__a_slot_freed_is_taken_last),
      TEST(arena_create__grows_and_never_moves),
      TEST(arena_create__constructor_throws_nothing_changes),
      TEST(arena_for_each__live_objects_of_the_kind_only),
      TEST(arena__threads),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
