// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The waits of an EVD that gets only software events: everything except the completion queue.
#include "udapl/core/events/evd.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/unit/udapl-core/fixture.hpp"
#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"

using namespace dapple::udapl;

namespace {

struct Fixture {
  no_device::OpenIa ia{true};
  no_device::OpenEvd open{ia.get(), 4};
  Evd& evd = open.get();
  Event event{};
  uint32_t more = 77;

  void post(uintptr_t number) { CHECK(evd.post_software(reinterpret_cast<void*>(number)).has_value()); }
  bool failed(const Result<>& result, Type type, Subtype subtype = Subtype::kNone) {
    return !result && result.error() == Error{type, subtype};
  }
};

constexpr uint32_t kLong_us = 20'000'000;

void await_waiter(Evd& evd) {
  while (!evd.has_waiter()) std::this_thread::yield();
}

void evd_wait__threshold_out_of_range() {
  Fixture f;
  CHECK(f.failed(wait_for_event(f.evd, 0, 0, f.event, f.more), Type::kInvalidParameter, Subtype::kThreshold));
  CHECK(f.failed(wait_for_event(f.evd, 0, 5, f.event, f.more), Type::kInvalidParameter, Subtype::kThreshold));
  CHECK(f.failed(wait_for_event(f.evd, 0, UINT32_MAX, f.event, f.more), Type::kInvalidParameter, Subtype::kThreshold));
  CHECK(f.failed(wait_for_event(f.evd, 0, 4, f.event, f.more), Type::kTimeoutExpired));
}

void evd_wait__takes_one_and_counts_the_rest() {
  Fixture f;
  for (uintptr_t i = 1; i <= 3; ++i) f.post(i);
  CHECK(wait_for_event(f.evd, 0, 1, f.event, f.more).has_value());
  CHECK_EQUAL(f.event.software, reinterpret_cast<void*>(uintptr_t{1}));
  CHECK_EQUAL(f.more, 2);
}

void evd_wait__more_is_told_when_time_is_up() {
  Fixture f;
  f.post(1);
  f.post(2);
  CHECK(f.failed(wait_for_event(f.evd, 1000, 3, f.event, f.more), Type::kTimeoutExpired));
  CHECK_EQUAL(f.more, 2);
  CHECK(f.failed(wait_for_event(f.evd, 0, 3, f.event, f.more), Type::kTimeoutExpired));
  CHECK_EQUAL(f.more, 2);
}

void evd_wait__never_before_the_deadline() {
  Fixture f;
  for (const uint32_t timeout_us : {0U, 1U, 50U, 999U, 1500U, 20'000U}) {
    const int64_t start = now_ns();
    CHECK(f.failed(wait_for_event(f.evd, timeout_us, 1, f.event, f.more), Type::kTimeoutExpired));
    CHECK(now_ns() - start >= int64_t{timeout_us} * 1000);
  }
}

void evd_wait__microseconds_are_kept() {
  Fixture f;
  // On a busy machine many waits may be late, but not all.
  int64_t best = kNever;
  for (int i = 0; i < 10'000 && best >= 1'000'000; ++i) {
    const int64_t start = now_ns();
    CHECK(f.failed(wait_for_event(f.evd, 100, 1, f.event, f.more), Type::kTimeoutExpired));
    best = std::min(best, now_ns() - start);
  }
  CHECK(best < 1'000'000);
}

void evd_wait__reaching_the_threshold_wakes() {
  Fixture f;
  std::thread poster([&] {
    await_waiter(f.evd);
    for (uintptr_t i = 1; i <= 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      f.post(i);
    }
  });
  CHECK(wait_for_event(f.evd, kLong_us, 3, f.event, f.more).has_value());
  CHECK_EQUAL(f.event.software, reinterpret_cast<void*>(uintptr_t{1}));
  CHECK_EQUAL(f.more, 2);
  poster.join();
}

// Events that arrive in time but are too few must not start the time-out again.
void evd_wait__deadline_is_one_however_often_it_wakes() {
  Fixture f;
  std::thread poster([&] {
    await_waiter(f.evd);
    for (uintptr_t i = 1; i <= 3; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      f.post(i);
    }
  });
  const int64_t start = now_ns();
  CHECK(f.failed(wait_for_event(f.evd, 500'000, 4, f.event, f.more), Type::kTimeoutExpired));
  const int64_t took = now_ns() - start;
  poster.join();
  CHECK(took >= 500'000'000);
  CHECK(took < 5'000'000'000);
  CHECK_EQUAL(f.more, 3);
}

void evd_wait__second_waiter_and_dequeue_beside_one() {
  Fixture f;
  std::thread waiter([&] { CHECK(wait_for_event(f.evd, kLong_us, 1, f.event, f.more).has_value()); });
  await_waiter(f.evd);
  Event other{};
  uint32_t other_more = 0;
  CHECK(f.failed(wait_for_event(f.evd, 0, 1, other, other_more), Type::kInvalidState, Subtype::kEvdWaiter));
  CHECK(f.failed(take_event(f.evd, other), Type::kInvalidState, Subtype::kEvdWaiter));
  CHECK(f.failed(Evd::free(f.evd), Type::kInvalidState, Subtype::kEvdWaiter));
  f.post(1);
  waiter.join();
  CHECK(f.failed(take_event(f.evd, other), Type::kQueueEmpty));
}

void evd_set_unwaitable__wakes_and_refuses() {
  Fixture f;
  std::thread waiter([&] {
    CHECK(f.failed(wait_for_event(f.evd, kLong_us, 1, f.event, f.more), Type::kInvalidState, Subtype::kEvdUnwaitable));
  });
  await_waiter(f.evd);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  f.evd.set_waitable(false);
  waiter.join();
  CHECK(f.failed(wait_for_event(f.evd, 0, 1, f.event, f.more), Type::kInvalidState, Subtype::kEvdUnwaitable));
  f.post(1);
  CHECK(take_event(f.evd, f.event).has_value());  // only waiting is disabled
  f.evd.set_waitable(true);
  CHECK(f.failed(wait_for_event(f.evd, 0, 1, f.event, f.more), Type::kTimeoutExpired));
}

void evd_abort__ends_a_wait() {
  Fixture f;
  std::thread waiter([&] { CHECK(f.failed(wait_for_event(f.evd, Evd::kInfinite, 1, f.event, f.more), Type::kAbort)); });
  await_waiter(f.evd);
  f.evd.abort();
  CHECK(!f.evd.has_waiter());
  waiter.join();
}

void on_signal(int) {}

void evd_wait__a_signal_ends_it() {
  struct sigaction action = {};
  struct sigaction before = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // as signal() sets it
  sigaction(SIGUSR1, &action, &before);
  Fixture f;
  for (const uint32_t timeout_us : {kLong_us, Evd::kInfinite}) {
    std::atomic<bool> done = false;
    std::thread waiter([&] {
      CHECK(f.failed(wait_for_event(f.evd, timeout_us, 1, f.event, f.more), Type::kInterruptedCall));
      done = true;
    });
    // Until it has arrived while the waiter sleeps.
    await_waiter(f.evd);
    while (!done) {
      pthread_kill(waiter.native_handle(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    waiter.join();
  }
  sigaction(SIGUSR1, &before, nullptr);
}

// pthread_cancel() of a waiting thread leaves the EVD as the end of a wait does.
void evd_wait__cancelled_gives_the_evd_up() {
  Fixture f;
  for (const uint32_t threshold : {1U, 3U}) {
    pthread_t waiter;
    struct Call {
      Evd& evd;
      uint32_t threshold;
    } call{f.evd, threshold};
    const auto run = [](void* argument) -> void* {
      auto& it = *static_cast<Call*>(argument);
      Event event;
      uint32_t more;
      (void)wait_for_event(it.evd, Evd::kInfinite, it.threshold, event, more);
      return nullptr;
    };
    CHECK_EQUAL(pthread_create(&waiter, nullptr, run, &call), 0);
    await_waiter(f.evd);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_EQUAL(pthread_cancel(waiter), 0);
    void* result = nullptr;
    CHECK_EQUAL(pthread_join(waiter, &result), 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(!f.evd.has_waiter());
    f.post(threshold);
    CHECK(wait_for_event(f.evd, kLong_us, 1, f.event, f.more).has_value());
  }
}

// Only a wait that sleeps is a cancellation point.
void evd_post__is_no_cancellation_point() {
  Fixture f;
  std::thread waiter([&] { CHECK(wait_for_event(f.evd, kLong_us, 1, f.event, f.more).has_value()); });
  await_waiter(f.evd);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  pthread_t poster;
  const auto run = [](void* evd) -> void* {
    pthread_cancel(pthread_self());
    return static_cast<Evd*>(evd)->post_software(nullptr) ? evd : nullptr;
  };
  CHECK_EQUAL(pthread_create(&poster, nullptr, run, &f.evd), 0);
  void* result = nullptr;
  CHECK_EQUAL(pthread_join(poster, &result), 0);
  CHECK(result == &f.evd);
  waiter.join();
}

void evd_post__full_queue() {
  Fixture f;
  for (uintptr_t i = 1; i <= 4; ++i) f.post(i);
  CHECK(f.failed(f.evd.post_software(nullptr), Type::kQueueFull));
  for (uintptr_t i = 1; i <= 4; ++i) {
    CHECK(take_event(f.evd, f.event).has_value());
    CHECK_EQUAL(f.event.software, reinterpret_cast<void*>(i));
  }
  CHECK(f.failed(take_event(f.evd, f.event), Type::kQueueEmpty));
}

void evd_post__only_where_software_events_may_come() {
  no_device::OpenIa ia;
  no_device::OpenEvd open(ia.get(), 4, kEvdConnection);
  const auto result = open.get().post_software(nullptr);
  CHECK(!result && result.error() == (Error{Type::kInvalidParameter, Subtype::kEvd}));
}

// No event is lost or delivered twice, and no wait sleeps through an event.
void evd__posters_and_a_waiter() {
  no_device::OpenIa ia(true);
  no_device::OpenEvd open(ia.get(), 8);
  Evd& evd = open.get();
  constexpr uintptr_t kEach = 3000;
  std::thread posters[2];
  for (uintptr_t p = 0; p < 2; ++p) {
    posters[p] = std::thread([&evd, p] {
      for (uintptr_t i = 0; i < kEach; ++i) {
        while (!evd.post_software(reinterpret_cast<void*>(p * kEach + i))) std::this_thread::yield();
      }
    });
  }
  uintptr_t next[2] = {};
  for (uintptr_t taken = 0; taken < 2 * kEach; ++taken) {
    Event event{};
    uint32_t more = 0;
    if (!wait_for_event(evd, kLong_us, 1, event, more)) {
      CHECK(false);
      break;
    }
    const auto number = reinterpret_cast<uintptr_t>(event.software);
    CHECK_EQUAL(number % kEach, next[number / kEach]++);
  }
  for (auto& poster : posters) poster.join();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(evd_wait__threshold_out_of_range),
      TEST(evd_wait__takes_one_and_counts_the_rest),
      TEST(evd_wait__more_is_told_when_time_is_up),
      TEST(evd_wait__never_before_the_deadline),
      TEST(evd_wait__microseconds_are_kept),
      TEST(evd_wait__reaching_the_threshold_wakes),
      TEST(evd_wait__deadline_is_one_however_often_it_wakes),
      TEST(evd_wait__second_waiter_and_dequeue_beside_one),
      TEST(evd_set_unwaitable__wakes_and_refuses),
      TEST(evd_abort__ends_a_wait),
      TEST(evd_wait__a_signal_ends_it),
      TEST(evd_wait__cancelled_gives_the_evd_up),
      TEST(evd_post__is_no_cancellation_point),
      TEST(evd_post__full_queue),
      TEST(evd_post__only_where_software_events_may_come),
      TEST(evd__posters_and_a_waiter),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
