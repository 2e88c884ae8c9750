// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// pthread_cancel: a wait that sleeps ends and leaves nothing behind; every other call completes.
#include <pthread.h>

#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/endpoint/ep_post_fast.hpp"

using namespace dapple::udapl;

namespace {

constexpr ibv_sge kSegment{0x1000, 256, 1};
constexpr RemoteBuffer kRemote{0x1000, 4096, 7};
constexpr uint32_t kLong_us = 20'000'000;

// A thread that is cancelled at a random time.
class Cancelled {
 public:
  explicit Cancelled(std::function<void()> call) : call_(std::move(call)) {
    CHECK_EQUAL(pthread_create(&thread_, nullptr, run, this), 0);
  }
  void cancel() { CHECK_EQUAL(pthread_cancel(thread_), 0); }
  // True after the call has returned.
  bool join() {
    void* end = nullptr;
    CHECK_EQUAL(pthread_join(thread_, &end), 0);
    CHECK(end == PTHREAD_CANCELED);
    return came_back_;
  }

 private:
  static void* run(void* argument) {
    auto& self = *static_cast<Cancelled*>(argument);
    self.call_();
    self.came_back_ = true;
    for (;;) pause();
  }
  std::function<void()> call_;
  bool came_back_ = false;
  pthread_t thread_{};
};

// True if a call returns whose thread was cancelled before it.
bool comes_back(const std::function<void()>& call) {
  Cancelled thread([&] {
    pthread_cancel(pthread_self());
    call();
  });
  return thread.join();
}

struct Rig {
  explicit Rig(bool thread_safe = false) : ia((fake_device::reset(), thread_safe)) {}
  void post(uint64_t cookie) { CHECK(ep.post_rdma_write({&kSegment, 1}, cookie, kRemote, 0).has_value()); }
  bool gets(uint64_t cookie, uint32_t timeout_us = kLong_us) {
    Event event;
    uint32_t more;
    return wait_for_event(evd, timeout_us, 1, event, more) && event.dto.user_cookie == cookie;
  }
  fake_device::Ia ia;
  Evd& evd = ia.evd(64);
  Ep& ep = ia.connected_ep({.request = &evd}, {});
};

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

void spin(uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

void evd_wait__cancelled_asleep() {
  Rig rig;
  Cancelled waiter([&] { rig.gets(0); });
  while (!rig.evd.has_waiter()) sleep_ms(1);
  sleep_ms(20);
  waiter.cancel();
  CHECK(!waiter.join());
  CHECK(!rig.evd.has_waiter());
  rig.post(1);
  CHECK(rig.gets(1));
}

void evd_wait__cancelled_before_it_sleeps() {
  Rig rig;
  CHECK(!comes_back([&] { rig.gets(0); }));
  CHECK(!rig.evd.has_waiter());
  std::thread poster([&] {
    sleep_ms(20);
    rig.post(1);
  });
  CHECK(rig.gets(1));
  poster.join();
}

void evd_wait__cancelled_gets_what_is_there() {
  Rig rig;
  rig.post(1);
  bool got = false;
  CHECK(comes_back([&] { got = rig.gets(1); }));
  CHECK(got);
}

// A notification that was taken is acknowledged; otherwise destroying the CQ would wait for that.
void evd_wait__cancelled_when_it_takes_the_notification() {
  Rig rig;
  Cancelled waiter([&] { CHECK(rig.gets(1)); });
  while (!rig.evd.has_waiter()) sleep_ms(1);
  sleep_ms(20);
  fake_device::state.cancels_taker = true;
  rig.post(1);
  CHECK(waiter.join());
  CHECK(!fake_device::state.cancels_taker);
}

// Either the thread gets an event that arrives as it ends, or the event is left for the next one.
void evd_wait__cancelled_when_the_event_comes() {
  Rig rig;
  for (uint32_t i = 0; i < 2000; ++i) {
    bool got = false;
    Cancelled waiter([&] { got = rig.gets(i); });
    while (!rig.evd.has_waiter()) std::this_thread::yield();
    spin(i % 8 * 1000);
    rig.post(i);
    spin(i % 256 * 64);
    waiter.cancel();
    waiter.join();
    CHECK(got || rig.gets(i));
  }
}

#ifndef __SANITIZE_THREAD__  // it ignores mutexes that a thread locks after it was cancelled in ppoll()
void cno_wait__cancelled_when_the_event_comes() {
  Rig rig;
  Cno& cno = rig.ia.cno();
  CHECK(rig.evd.set_cno(&cno).has_value());
  Event event;
  for (uint32_t i = 0; i < 2000; ++i) {
    bool told = false;
    const auto notifier = cno.notifier();
    Cancelled waiter([&] { told = notifier->wait(kLong_us).has_value(); });
    while (!notifier->waiters()) std::this_thread::yield();
    spin(i % 8 * 1000);
    rig.post(i);
    spin(i % 256 * 64);
    waiter.cancel();
    waiter.join();
    CHECK_EQUAL(notifier->waiters(), 0);
    CHECK(told || notifier->wait(kLong_us).has_value());
    CHECK(take_event(rig.evd, event).has_value());
  }
}
#endif

void cno_trigger__is_no_cancellation_point() {
  Rig rig;
  Cno& cno = rig.ia.cno();
  CHECK(rig.evd.set_cno(&cno).has_value());
  rig.post(1);
  bool told = false;
  CHECK(comes_back([&] { told = cno.notifier()->take().has_value(); }));
  CHECK(told);
}

// The thread may end in a post that is a system call, and then has posted.
void ep_post__cancelled_inside_of_the_device() {
  Rig rig;
  CHECK(!comes_back([&] { (void)rig.ep.post_request_fast<DtoOperation::kRdmaWrite>(1, &kSegment, 1, kRemote, 0); }));
  CHECK(rig.gets(1));
  rig.post(2);
  CHECK(rig.gets(2));
  CHECK(rig.ep.request_idle());
}

void ep_post__the_long_way_is_done_whole() {
  Rig rig(true);
  CHECK(comes_back([&] { rig.post(1); }));
  CHECK(rig.gets(1));
  rig.post(2);
  CHECK(rig.gets(2));
  CHECK(rig.ep.request_idle());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(evd_wait__cancelled_asleep),
      TEST_IN_CHILD(evd_wait__cancelled_before_it_sleeps),
      TEST_IN_CHILD(evd_wait__cancelled_gets_what_is_there),
      TEST_IN_CHILD(evd_wait__cancelled_when_it_takes_the_notification),
      TEST_IN_CHILD(evd_wait__cancelled_when_the_event_comes),
#ifndef __SANITIZE_THREAD__
      TEST_IN_CHILD(cno_wait__cancelled_when_the_event_comes),
#endif
      TEST_IN_CHILD(cno_trigger__is_no_cancellation_point),
      TEST_IN_CHILD(ep_post__cancelled_inside_of_the_device),
      TEST_IN_CHILD(ep_post__the_long_way_is_done_whole),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
