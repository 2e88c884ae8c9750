// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/events/software_queue.hpp"

#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/queue/flush_list.hpp"

using namespace dapple::udapl;

namespace {

Event numbered(uintptr_t number) {
  Event event{};
  event.kind = EventKind::kSoftware;
  event.software = reinterpret_cast<void*>(number);
  return event;
}

uintptr_t number_of(const Event& event) {
  return reinterpret_cast<uintptr_t>(event.software);
}

void software_queue_push__full_is_refused_and_loses_nothing() {
  SoftwareQueue queue(3);
  CHECK_EQUAL(queue.capacity(), 3);
  for (uintptr_t i = 1; i <= 3; ++i) CHECK(queue.push(numbered(i)));
  CHECK(!queue.push(numbered(4)));
  CHECK_EQUAL(queue.count(), 3);
  Event event{};
  for (uintptr_t i = 1; i <= 3; ++i) {
    CHECK(queue.pop(event));
    CHECK_EQUAL(number_of(event), i);
  }
  CHECK(!queue.pop(event));
  CHECK_EQUAL(queue.count(), 0);
}

void software_queue__order_is_kept_around_the_end() {
  SoftwareQueue queue(5);
  Event event{};
  uintptr_t next = 0;
  uintptr_t expected = 0;
  for (int round = 0; round < 100; ++round) {
    while (queue.push(numbered(next))) ++next;
    for (int i = 0; i < 1 + round % 5; ++i) {
      CHECK(queue.pop(event));
      CHECK_EQUAL(number_of(event), expected++);
    }
  }
}

void software_queue_remove_if__only_what_matches_order_kept() {
  SoftwareQueue queue(8);
  Event event{};
  // Starts in the middle of the storage, so that the stored events wrap around.
  for (uintptr_t i = 0; i < 5; ++i) CHECK(queue.push(numbered(i)));
  for (int i = 0; i < 5; ++i) CHECK(queue.pop(event));
  for (uintptr_t i = 0; i < 8; ++i) CHECK(queue.push(numbered(i)));
  queue.remove_if([](const Event& each) { return number_of(each) % 3 == 0; });
  CHECK_EQUAL(queue.count(), 5);
  for (uintptr_t expected : {1U, 2U, 4U, 5U, 7U}) {
    CHECK(queue.pop(event));
    CHECK_EQUAL(number_of(event), expected);
  }
  CHECK(!queue.pop(event));
}

void software_queue_remove_if__all_and_none() {
  SoftwareQueue queue(4);
  for (uintptr_t i = 0; i < 4; ++i) CHECK(queue.push(numbered(i)));
  queue.remove_if([](const Event&) { return false; });
  CHECK_EQUAL(queue.count(), 4);
  CHECK(!queue.push(numbered(9)));
  queue.remove_if([](const Event&) { return true; });
  CHECK_EQUAL(queue.count(), 0);
  CHECK(queue.push(numbered(9)));
}

// The urgent mark is no event, and stays when events are taken.
void software_queue_set_urgent__beside_events() {
  SoftwareQueue queue(2);
  CHECK(!queue.any());
  queue.set_urgent(true);
  CHECK(queue.any() && queue.urgent());
  CHECK_EQUAL(queue.count(), 0);
  CHECK(queue.push(numbered(1)));
  CHECK(queue.push(numbered(2)));
  CHECK(!queue.push(numbered(3)));
  CHECK_EQUAL(queue.count(), 2);
  Event event{};
  CHECK(queue.pop(event));
  queue.remove_if([](const Event&) { return true; });
  CHECK_EQUAL(queue.count(), 0);
  CHECK(!queue.pop(event));
  CHECK(queue.urgent());
  CHECK(queue.push(numbered(4)));
  queue.set_urgent(false);
  CHECK(!queue.urgent() && queue.any());
  CHECK_EQUAL(queue.count(), 1);
}

void flush_list__each_link_once_and_only_in_its_list() {
  WorkRequestRing ring(1, 0);
  FlushLink links[3] = {FlushLink(ring), FlushLink(ring), FlushLink(ring)};
  FlushList list;
  FlushList other;
  CHECK(!list.take());
  for (FlushLink& link : links) list.add(link);
  list.add(links[1]);
  other.remove(links[0]);  // not in this one
  list.remove(links[1]);
  list.remove(links[1]);
  FlushLink* const first = list.take();
  FlushLink* const second = list.take();
  CHECK(first != second && first != &links[1] && second != &links[1] && first && second);
  CHECK(!list.take());
  other.add(links[0]);
  CHECK(other.take() == &links[0]);
}

void software_queue__many_posters_one_taker() {
  constexpr uintptr_t kEach = 5000;
  SoftwareQueue queue(32);
  std::vector<std::thread> posters;
  for (uintptr_t p = 0; p < 3; ++p) {
    posters.emplace_back([&queue, p] {
      for (uintptr_t i = 0; i < kEach; ++i) {
        while (!queue.push(numbered(p * kEach + i))) std::this_thread::yield();
      }
    });
  }
  uintptr_t next[3] = {};
  int wrong = 0;
  for (uintptr_t taken = 0; taken < 3 * kEach;) {
    Event event{};
    if (!queue.pop(event)) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    const uintptr_t number = number_of(event);
    if (number % kEach != next[number / kEach]++) ++wrong;  // the events of each poster stay in order
  }
  for (auto& poster : posters) poster.join();
  CHECK_EQUAL(wrong, 0);
  CHECK_EQUAL(queue.count(), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(software_queue_push__full_is_refused_and_loses_nothing),
      TEST(software_queue__order_is_kept_around_the_end),
      TEST(software_queue_remove_if__only_what_matches_order_kept),
      TEST(software_queue_remove_if__all_and_none),
      TEST(software_queue_set_urgent__beside_events),
      TEST(flush_list__each_link_once_and_only_in_its_list),
      TEST(software_queue__many_posters_one_taker),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
