// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completions on their way to the consumer, without a device: the tests are the completion queue.
#include "udapl/core/queue/completion_ring.hpp"

#include <deque>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"

using dapple::udapl::CompletionRing;

namespace {

constexpr uint32_t kBatch = CompletionRing::kBatch;

// A completion queue with numbered entries.
struct Source {
  std::deque<uint64_t> entries;
  std::vector<int> asked_for;

  void add(uint64_t first, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) entries.push_back(first + i);
  }
  int operator()(ibv_wc* out, int capacity) {
    asked_for.push_back(capacity);
    int got = 0;
    for (; got < capacity && !entries.empty(); ++got) {
      out[got] = {};
      out[got].wr_id = entries.front();
      entries.pop_front();
    }
    return got;
  }
};

bool all(const ibv_wc&) {
  return true;
}

// Polls and keeps all.
uint32_t take(CompletionRing& ring, Source& source) {
  return ring.keep(ring.poll([&](ibv_wc* out, int capacity) { return source(out, capacity); }), all);
}

uint64_t pop(CompletionRing& ring) {
  const uint64_t number = ring.front().wr_id;
  ring.pop_front();
  return number;
}

void completion_ring_poll__a_batch_at_most() {
  CompletionRing ring;
  CHECK(ring.open());
  Source source;
  source.add(0, 100);
  CHECK_EQUAL(take(ring, source), kBatch);
  CHECK_EQUAL(ring.count(), kBatch);
  CHECK_EQUAL(source.entries.size(), 100 - kBatch);
}

void completion_ring_poll__never_beyond_its_end() {
  CompletionRing ring;
  CHECK(ring.open());
  Source source;
  source.add(0, 1000);
  uint64_t expected = 0;
  for (int round = 0; round < 200; ++round) {
    while (!ring.full() && !source.entries.empty()) take(ring, source);
    for (uint32_t i = 0; i < 5 && !ring.empty(); ++i) CHECK_EQUAL(pop(ring), expected++);
  }
  CHECK_EQUAL(expected, 1000);
  for (int capacity : source.asked_for) CHECK(capacity > 0 && capacity <= static_cast<int>(kBatch));
}

void completion_ring_poll_into_empty__starts_over_with_room_for_a_batch() {
  CompletionRing ring;
  CHECK(ring.open());
  Source source;
  source.add(0, 2 * kBatch - 1);
  take(ring, source);
  take(ring, source);
  while (!ring.empty()) pop(ring);
  source.add(500, 2);
  const int count = ring.poll_into_empty([&](ibv_wc* out, int capacity) { return source(out, capacity); });
  CHECK_EQUAL(source.asked_for.back(), kBatch);
  CHECK_EQUAL(count, 2);
  CHECK_EQUAL(ring.first().wr_id, 500);
  CHECK(ring.empty());
  CHECK_EQUAL(ring.keep(count, all), 2);
  CHECK_EQUAL(pop(ring), 500);
  CHECK_EQUAL(pop(ring), 501);
}

void completion_ring_keep__the_wanted_ones_in_order() {
  CompletionRing ring;
  CHECK(ring.open());
  Source source;
  source.add(0, 10);
  const auto poll = [&](ibv_wc* out, int capacity) { return source(out, capacity); };
  CHECK_EQUAL(ring.keep(ring.poll(poll), [](const ibv_wc& completion) { return completion.wr_id % 3 == 1; }), 3);
  source.add(20, 1);
  CHECK_EQUAL(ring.keep(ring.poll(poll), [](const ibv_wc&) { return false; }), 0);
  for (uint64_t expected : {1, 4, 7}) CHECK_EQUAL(pop(ring), expected);
  CHECK(ring.empty());
}

void completion_ring_grow__keeps_the_order() {
  CompletionRing ring;
  CHECK(ring.open());
  Source source;
  source.add(0, 7);
  take(ring, source);
  for (uint64_t i = 0; i < 7; ++i) CHECK_EQUAL(pop(ring), i);
  source.add(7, 1000);
  const uint32_t before = ring.capacity();
  while (!ring.full()) take(ring, source);
  CHECK(ring.grow(1000));
  CHECK(ring.capacity() > before);
  for (uint64_t expected = 7; expected < 1007;) {
    while (!ring.full() && !source.entries.empty()) take(ring, source);
    CHECK_EQUAL(pop(ring), expected++);
  }
  CHECK(ring.empty());
}

void completion_ring_grow__not_beyond_the_limit() {
  CompletionRing ring;
  CHECK(ring.open());
  CHECK(!ring.grow(ring.capacity()));
  CHECK(ring.grow(100));
  CHECK_EQUAL(ring.capacity(), 128);
  CHECK(!ring.grow(128));
}

void completion_ring_remove_if__closes_the_gaps() {
  CompletionRing ring;
  CHECK(ring.open());
  Source source;
  source.add(0, 25);
  take(ring, source);
  for (int i = 0; i < 12; ++i) pop(ring);
  while (!source.entries.empty()) take(ring, source);
  source.add(25, 15);
  while (!source.entries.empty()) take(ring, source);  // around the end of the ring
  ring.remove_if([](const ibv_wc& completion) { return completion.wr_id % 2 == 0; });
  CHECK_EQUAL(ring.count(), 14);
  for (uint64_t expected = 13; expected < 40; expected += 2) CHECK_EQUAL(pop(ring), expected);
  CHECK(ring.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(completion_ring_poll__a_batch_at_most),
      TEST(completion_ring_poll__never_beyond_its_end),
      TEST(completion_ring_poll_into_empty__starts_over_with_room_for_a_batch),
      TEST(completion_ring_keep__the_wanted_ones_in_order),
      TEST(completion_ring_grow__keeps_the_order),
      TEST(completion_ring_grow__not_beyond_the_limit),
      TEST(completion_ring_remove_if__closes_the_gaps),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
