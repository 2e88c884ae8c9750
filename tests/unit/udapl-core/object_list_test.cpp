// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/object.hpp"

using namespace dapple::udapl;

namespace {

struct Thing : Object {
  explicit Thing(int its_number) : Object(nullptr, Kind::kNone, nullptr), number(its_number) {}
  int number;
};

std::vector<int> numbers_in(const ObjectList& list) {
  std::vector<int> numbers;
  list.for_each<Thing>([&](const Thing& thing) { numbers.push_back(thing.number); });
  return numbers;
}

void object_list__has_what_was_added_and_not_removed() {
  ObjectList list;
  CHECK(numbers_in(list).empty());
  Thing one(1), two(2), three(3);
  for (Thing* thing : {&one, &two, &three}) list.add(*thing);
  CHECK((numbers_in(list) == std::vector{3, 2, 1}));
  ObjectList::remove(two);
  CHECK((numbers_in(list) == std::vector{3, 1}));
  ObjectList::remove(three);
  list.add(two);
  CHECK((numbers_in(list) == std::vector{2, 1}));
  ObjectList::remove(one);
  ObjectList::remove(two);
  CHECK(numbers_in(list).empty());
}

void object_list__loses_objects_while_it_is_visited() {
  ObjectList list;
  Thing one(1), two(2), three(3);
  for (Thing* thing : {&one, &two, &three}) list.add(*thing);
  int visited = 0;
  list.for_each<Thing>([&](Thing& thing) {
    ++visited;
    if (thing.number != 2) ObjectList::remove(thing);
  });
  CHECK_EQUAL(visited, 3);
  CHECK((numbers_in(list) == std::vector{2}));
}

// ThreadSanitizer sees a race.
void consumer_context__set_while_another_thread_gets_it() {
  Thing thing(1);
  std::thread setter([&] {
    for (uint64_t i = 1; i <= 10000; ++i) thing.set_consumer_context(i);
  });
  uint64_t last = 0;
  while (last < 10000) {
    if (!thing.has_consumer_context()) continue;
    const uint64_t now = thing.consumer_context();
    CHECK(now >= last && now > 0);
    last = now;
  }
  setter.join();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(object_list__has_what_was_added_and_not_removed),
      TEST(object_list__loses_objects_while_it_is_visited),
      TEST(consumer_context__set_while_another_thread_gets_it),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
