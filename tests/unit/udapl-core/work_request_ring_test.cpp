// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/queue/work_request_ring.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

WorkRequest& post(WorkRequestRing& ring, uint64_t cookie = 0) {
  WorkRequest& request = ring.next();
  request.cookie = cookie;
  ring.post();
  return request;
}

void ring__holds_its_capacity_and_no_more() {
  for (uint32_t capacity : {1U, 2U, 3U, 16U, 17U}) {
    WorkRequestRing ring(capacity, 0);
    CHECK(ring.empty());
    for (uint32_t i = 0; i < capacity; ++i) {
      CHECK(!ring.full());
      post(ring, i);
    }
    CHECK(ring.full());
    CHECK(!ring.empty());
    ring.complete_and_deliver(ring.at(0));
    CHECK(!ring.full());
  }
}

void ring__capacity_zero_is_always_full() {
  WorkRequestRing ring(0, 0);
  CHECK(ring.full());
  CHECK(ring.empty());
}

void ring_next__counts_only_after_post() {
  WorkRequestRing ring(4, 0);
  ring.next().cookie = 1;
  ring.next().cookie = 2;
  CHECK(ring.empty());
  CHECK_EQUAL(ring.posted(), 0);
  ring.post();
  CHECK_EQUAL(ring.posted(), 1);
  CHECK_EQUAL(ring.at(0).cookie, 2);
}

void ring_release__takes_those_before_along() {
  WorkRequestRing ring(8, 0);
  for (uint64_t i = 0; i < 8; ++i) post(ring, i);
  ring.complete_and_deliver(ring.at(5));
  CHECK_EQUAL(ring.released(), 6);
  for (uint64_t i = 8; i < 14; ++i) {
    CHECK(!ring.full());
    post(ring, i);
  }
  CHECK(ring.full());
  ring.complete_and_deliver(ring.at(13));
  CHECK(ring.empty());
}

void ring__keeps_requests_over_many_rounds() {
  WorkRequestRing ring(5, 0);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    WorkRequest& request = post(ring, i);
    CHECK_EQUAL(request.sequence, i);
    if (ring.full() || i % 3 == 0) {
      const WorkRequest& oldest = ring.at(ring.released());
      CHECK_EQUAL(oldest.cookie, expected);
      ++expected;
      ring.complete_and_deliver(oldest);
    }
    while (ring.full()) {
      ring.complete_and_deliver(ring.at(ring.released()));
      ++expected;
    }
  }
}

void ring_clear__starts_over() {
  WorkRequestRing ring(2, 0);
  post(ring, 1);
  post(ring, 2);
  ring.clear();
  CHECK(ring.empty());
  CHECK(!ring.full());
  CHECK_EQUAL(ring.posted(), 0);
  CHECK_EQUAL(post(ring, 3).sequence, 0);
}

void ring_segments__each_request_has_its_own() {
  constexpr uint32_t kKept = 3;
  WorkRequestRing ring(4, kKept);
  for (uint32_t i = 0; i < 4; ++i) {
    const auto segments = ring.segments(ring.next());
    CHECK_EQUAL(segments.size(), kKept);
    for (ibv_sge& segment : segments) segment.length = i + 1;
    ring.post();
  }
  for (uint32_t i = 0; i < 4; ++i) {
    for (const ibv_sge& segment : ring.segments(ring.at(i))) CHECK_EQUAL(segment.length, i + 1);
  }
}

void ring__one_thread_posts_another_completes() {
  constexpr uint64_t kRounds = 50'000;
  WorkRequestRing ring(16, 0);
  std::atomic<uint64_t> posted = 0;  // acts as the hardware, which orders a post before its completion
  std::atomic<int> wrong = 0;
  std::thread completer([&] {
    for (uint64_t i = 0; i < kRounds; ++i) {
      while (posted.load(std::memory_order_acquire) <= i) std::this_thread::yield();
      const WorkRequest& request = ring.at(static_cast<uint32_t>(i));
      if (request.cookie != i) ++wrong;
      ring.complete_and_deliver(request);
    }
  });
  for (uint64_t i = 0; i < kRounds; ++i) {
    while (ring.full()) std::this_thread::yield();
    post(ring, i);
    posted.store(i + 1, std::memory_order_release);
  }
  completer.join();
  CHECK_EQUAL(wrong.load(), 0);
  CHECK(ring.empty());
}

// As an endpoint does with the results of complete() and deliver().
void complete(WorkRequestRing& ring, const WorkRequest& request, bool delivers) {
  ring.release_to(ring.complete(request, delivers));
}
void deliver(WorkRequestRing& ring, const WorkRequest& request) {
  ring.release_to(ring.deliver(request));
}

void ring_complete__keeps_a_waiting_request_when_a_suppressed_one_follows() {
  WorkRequestRing ring(2, 0);
  const WorkRequest& waiting = post(ring);
  const WorkRequest& suppressed = post(ring);
  complete(ring, waiting, true);
  complete(ring, suppressed, false);
  CHECK_EQUAL(ring.released(), 0);
  CHECK(ring.full());
  CHECK_EQUAL(ring.completed(), 2);
  deliver(ring, waiting);
  CHECK(ring.empty());
}

void ring_deliver__stops_before_the_next_waiting_request() {
  WorkRequestRing ring(4, 0);
  const WorkRequest& first = post(ring);
  const WorkRequest& suppressed = post(ring);
  const WorkRequest& second = post(ring);
  complete(ring, first, true);
  complete(ring, suppressed, false);
  complete(ring, second, true);
  deliver(ring, first);
  CHECK_EQUAL(ring.released(), 1);
  deliver(ring, second);
  CHECK(ring.empty());
}

void ring_complete__releases_a_suppressed_one_at_once_when_nothing_waits() {
  WorkRequestRing ring(4, 0);
  post(ring);  // asks for no completion
  complete(ring, post(ring), false);
  CHECK(ring.empty());
}

void ring_withdraw__the_next_request_has_the_same_place() {
  WorkRequestRing ring(2, 0);
  post(ring, 1);
  ring.post_next()->cookie = 2;
  CHECK(ring.full());
  CHECK(ring.post_next() == nullptr);
  ring.withdraw();
  CHECK_EQUAL(ring.count(), 1);
  CHECK_EQUAL(post(ring, 3).sequence, 1);
  CHECK_EQUAL(ring.at(1).cookie, 3);
}

// The device may complete a request before its poster calls post().
void ring_complete__before_the_post() {
  WorkRequestRing ring(2, 0);
  for (uint32_t i = 0; i < 5; ++i) {
    WorkRequest& early = ring.next();
    complete(ring, early, true);
    deliver(ring, early);
    CHECK(ring.empty());
    ring.post();
    CHECK(ring.empty());
  }
  post(ring);
  post(ring);
  CHECK(ring.full());
}

void ring_for_each_incomplete__from_the_oldest_until_told() {
  WorkRequestRing ring(8, 0);
  for (uint64_t i = 0; i < 6; ++i) post(ring, i);
  complete(ring, ring.at(1), true);
  std::vector<uint64_t> seen;
  ring.for_each_incomplete([&](const WorkRequest& request) {
    seen.push_back(request.cookie);
    return request.cookie < 4;
  });
  CHECK(seen == (std::vector<uint64_t>{2, 3, 4}));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(ring__holds_its_capacity_and_no_more),
      TEST(ring__capacity_zero_is_always_full),
      TEST(ring_next__counts_only_after_post),
      TEST(ring_release__takes_those_before_along),
      TEST(ring__keeps_requests_over_many_rounds),
      TEST(ring_clear__starts_over),
      TEST(ring_segments__each_request_has_its_own),
      TEST(ring__one_thread_posts_another_completes),
      TEST(ring_complete__keeps_a_waiting_request_when_a_suppressed_one_follows),
      TEST(ring_deliver__stops_before_the_next_waiting_request),
      TEST(ring_complete__releases_a_suppressed_one_at_once_when_nothing_waits),
      TEST(ring_withdraw__the_next_request_has_the_same_place),
      TEST(ring_complete__before_the_post),
      TEST(ring_for_each_incomplete__from_the_oldest_until_told),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
