// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/cookie_ring.hpp"

#include <atomic>
#include <thread>

#include "tests/unit/udapl-registry/checks.hpp"

using namespace dapple::udapl;

namespace {

Cookie& push(CookieRing& ring, uint64_t user_cookie) {
  Cookie& cookie = ring.next();
  cookie.user_cookie = user_cookie;
  ring.push();
  return cookie;
}

void cookie_ring__holds_its_capacity_and_no_more() {
  for (uint32_t capacity : {1U, 2U, 3U, 16U, 17U}) {
    CookieRing ring(capacity, 0);
    CHECK(ring.empty());
    for (uint32_t i = 0; i < capacity; ++i) {
      CHECK(!ring.full());
      push(ring, i);
    }
    CHECK(ring.full());
    CHECK(!ring.empty());
    ring.retire(ring.at(0));
    CHECK(!ring.full());
  }
}

void cookie_ring__capacity_zero_is_always_full() {
  CookieRing ring(0, 0);
  CHECK(ring.full());
  CHECK(ring.empty());
}

void cookie_ring_next__counts_only_after_push() {
  CookieRing ring(4, 0);
  ring.next().user_cookie = 1;
  ring.next().user_cookie = 2;
  CHECK(ring.empty());
  CHECK_EQUAL(ring.head(), 0);
  ring.push();
  CHECK_EQUAL(ring.head(), 1);
  CHECK_EQUAL(ring.at(0).user_cookie, 2);
}

void cookie_ring_retire__takes_those_before_along() {
  CookieRing ring(8, 0);
  for (uint64_t i = 0; i < 8; ++i) push(ring, i);
  ring.retire(ring.at(5));
  CHECK_EQUAL(ring.tail(), 6);
  for (uint64_t i = 8; i < 14; ++i) {
    CHECK(!ring.full());
    push(ring, i);
  }
  CHECK(ring.full());
  ring.retire(ring.at(13));
  CHECK(ring.empty());
}

void cookie_ring__keeps_cookies_over_many_rounds() {
  CookieRing ring(5, 0);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    Cookie& cookie = push(ring, i);
    CHECK_EQUAL(cookie.sequence, i);
    if (ring.full() || i % 3 == 0) {
      const Cookie& oldest = ring.at(ring.tail());
      CHECK_EQUAL(oldest.user_cookie, expected);
      ++expected;
      ring.retire(oldest);
    }
    while (ring.full()) {
      ring.retire(ring.at(ring.tail()));
      ++expected;
    }
  }
}

void cookie_ring_clear__starts_over() {
  CookieRing ring(2, 0);
  push(ring, 1);
  push(ring, 2);
  ring.clear();
  CHECK(ring.empty());
  CHECK(!ring.full());
  CHECK_EQUAL(ring.head(), 0);
  CHECK_EQUAL(push(ring, 3).sequence, 0);
}

void cookie_ring_segments__each_cookie_has_its_own() {
  constexpr uint32_t kKept = 3;
  CookieRing ring(4, kKept);
  for (uint32_t i = 0; i < 4; ++i) {
    const auto segments = ring.segments(ring.next());
    CHECK_EQUAL(segments.size(), kKept);
    for (ibv_sge& segment : segments) segment.length = i + 1;
    ring.push();
  }
  for (uint32_t i = 0; i < 4; ++i) {
    for (const ibv_sge& segment : ring.segments(ring.at(i))) CHECK_EQUAL(segment.length, i + 1);
  }
}

void cookie_ring__poster_and_retirer_in_two_threads() {
  constexpr uint64_t kRounds = 50'000;
  CookieRing ring(16, 0);
  std::atomic<uint64_t> posted = 0;  // acts as the hardware, which orders a post before its completion
  std::atomic<int> wrong = 0;
  std::thread retirer([&] {
    for (uint64_t i = 0; i < kRounds; ++i) {
      while (posted.load(std::memory_order_acquire) <= i) std::this_thread::yield();
      const Cookie& cookie = ring.at(static_cast<uint32_t>(i));
      if (cookie.user_cookie != i) ++wrong;
      ring.retire(cookie);
    }
  });
  for (uint64_t i = 0; i < kRounds; ++i) {
    while (ring.full()) std::this_thread::yield();
    push(ring, i);
    posted.store(i + 1, std::memory_order_release);
  }
  retirer.join();
  CHECK_EQUAL(wrong.load(), 0);
  CHECK(ring.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(cookie_ring__holds_its_capacity_and_no_more),   TEST(cookie_ring__capacity_zero_is_always_full),
      TEST(cookie_ring_next__counts_only_after_push),      TEST(cookie_ring_retire__takes_those_before_along),
      TEST(cookie_ring__keeps_cookies_over_many_rounds),   TEST(cookie_ring_clear__starts_over),
      TEST(cookie_ring_segments__each_cookie_has_its_own), TEST(cookie_ring__poster_and_retirer_in_two_threads),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
