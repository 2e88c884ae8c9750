// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/locks/biased_mutex.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <initializer_list>

#include "tests/unit/provider-soft/forbidden_membarrier.hpp"
#include "tests/unit/provider-soft/store_noise.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

constexpr int kManyTimes = 100'000;

// What the lock protects. Two threads inside at the same time see each other's mark.
struct Room {
  BiasedMutex mutex{LockRank::kQueuePair};
  uint64_t visits = 0;
  std::atomic<uintptr_t> guest{0};
  std::atomic<uint32_t> meetings{0};
  StoreNoise noise;

  void visit(uintptr_t who) {
    guest.store(who, std::memory_order_relaxed);
    visits++;
    if (guest.load(std::memory_order_relaxed) != who) meetings.fetch_add(1);
  }
  void lock_and_visit(uintptr_t who) {
    const BiasedLock lock(mutex);
    visit(who);
  }
};

struct Guest {
  Room& room;
  uintptr_t number;
  std::atomic<bool>& over;
  long pause_ns = 0;  // between two visits
  bool tries = false;
  std::atomic<uint64_t> visits{0};
  pthread_t thread = {};

  // Only this thread writes the number. A read-modify-write would be a barrier between two visits.
  void count_visit() { visits.store(visits.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void start() { pthread_create(&thread, nullptr, run, this); }
  void end() const { pthread_join(thread, nullptr); }

  static void* run(void* self) {
    auto& guest = *static_cast<Guest*>(self);
    while (!guest.over.load(std::memory_order_relaxed)) {
      guest.room.noise.make();
      if (!guest.tries) {
        guest.room.lock_and_visit(guest.number);
        guest.count_visit();
      } else if (guest.room.mutex.try_lock()) {
        guest.room.visit(guest.number);
        guest.room.mutex.unlock();
        guest.count_visit();
      }
      const timespec pause = {0, guest.pause_ns};
      if (guest.pause_ns != 0) nanosleep(&pause, nullptr);
    }
    return nullptr;
  }
};

void sleep_ms(long ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

// Lets them come and go for that time. Nobody may meet another in the room, and every visit must count.
void expect_one_at_a_time(Room& room, std::atomic<bool>& over, std::initializer_list<Guest*> guests, long ms) {
  prepare_heavy_barriers();
  for (Guest* guest : guests) guest->start();
  sleep_ms(ms);
  // On a busy machine one of them may not have had its turn yet.
  const auto has_come = [](const Guest* guest) { return guest->visits.load() > 0; };
  for (int patience = 600; patience > 0 && !std::all_of(guests.begin(), guests.end(), has_come); --patience)
    sleep_ms(100);
  over.store(true);
  uint64_t sum = 0;
  for (const Guest* guest : guests) {
    guest->end();
    assert_true(guest->visits.load() > 0);
    sum += guest->visits.load();
  }
  assert_int_equal(room.meetings.load(), 0);
  assert_int_equal(room.visits, sum);
}

// The threads that come now and then end the privilege of the one that comes all the time.
void lock__favourite_and_rare_guests__one_at_a_time(void**) {
  Room room;
  std::atomic<bool> over{false};
  Guest favourite{room, 1, over}, rare{room, 2, over, 50'000}, trying{room, 3, over, 70'000, true};
  expect_one_at_a_time(room, over, {&favourite, &rare, &trying}, 1500);
}

void lock__equal_guests__one_at_a_time(void**) {
  Room room;
  std::atomic<bool> over{false};
  Guest one{room, 1, over}, two{room, 2, over}, three{room, 3, over, 0, true};
  expect_one_at_a_time(room, over, {&one, &two, &three}, 500);
}

void* try_it(void* mutex) {
  const bool got = static_cast<BiasedMutex*>(mutex)->try_lock();
  if (got) static_cast<BiasedMutex*>(mutex)->unlock();
  return reinterpret_cast<void*>(static_cast<uintptr_t>(got));
}

bool another_thread_gets(BiasedMutex& mutex) {
  pthread_t thread;
  void* got = nullptr;
  assert_int_equal(pthread_create(&thread, nullptr, try_it, &mutex), 0);
  pthread_join(thread, &got);
  return got != nullptr;
}

void try_lock__held_by_the_favourite__fails(void**) {
  prepare_heavy_barriers();
  BiasedMutex mutex{LockRank::kQueuePair};
  for (int i = 0; i < kManyTimes; ++i) {
    mutex.lock();
    mutex.unlock();
  }
  mutex.lock();
  assert_false(another_thread_gets(mutex));
  mutex.unlock();
  assert_true(another_thread_gets(mutex));
  // The favourite's privilege is over, and the lock works as before.
  {
    const BiasedLock lock(mutex);
    assert_false(another_thread_gets(mutex));
  }
  assert_true(another_thread_gets(mutex));
  assert_true(mutex.try_lock());
  assert_false(another_thread_gets(mutex));
  mutex.unlock();
  assert_true(another_thread_gets(mutex));
}

}  // namespace

int main() {
  if (!forbid_membarrier_if_wanted()) return 1;
  const CMUnitTest tests[] = {
      cmocka_unit_test(lock__favourite_and_rare_guests__one_at_a_time),
      cmocka_unit_test(lock__equal_guests__one_at_a_time),
      cmocka_unit_test(try_lock__held_by_the_favourite__fails),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
