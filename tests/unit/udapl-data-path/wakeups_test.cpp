// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Events that come at the worst moment of a wait: each test puts one between two steps of the waiting thread, from
// inside of the device's functions. A wait that misses it sleeps until its time-out, which the EVD's counters tell.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-data-path/fake_device.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"

using namespace dapple::udapl;

namespace {

std::vector<int64_t> sleeps_left_ns;  // of each sleep with a time-out
std::function<void()> after_sleep;

}  // namespace

// The system call, observed in the test's own thread.
int ppoll(pollfd* fds, nfds_t count, const timespec* left, const sigset_t* signals) {
  if (gettid() != getpid()) return static_cast<int>(syscall(SYS_ppoll, fds, count, left, signals, sizeof(uint64_t)));
  if (left) sleeps_left_ns.push_back(left->tv_sec * int64_t{1'000'000'000} + left->tv_nsec);
  timespec changing = left ? *left : timespec{};
  const long result = syscall(SYS_ppoll, fds, count, left ? &changing : nullptr, signals, sizeof(uint64_t));
  if (after_sleep) after_sleep();
  return static_cast<int>(result);
}

namespace {

constexpr ibv_sge kSegment{0x1000, 256, 1};
constexpr RemoteBuffer kRemote{0x1000, 4096, 7};
constexpr uint32_t kLong_us = 3'000'000;
constexpr uint32_t kShort_us = 20'000;
const auto kSomething = reinterpret_cast<void*>(uintptr_t{5});

uint64_t count(const Evd& evd, EvdCounter counter) {
  return evd.counters().at(static_cast<size_t>(counter));
}

struct Rig {
  explicit Rig(const EpAttr& attr = {}) {
    fake_device::state.holds = true;
    ep = &ia.connected_ep({.request = &evd}, attr);
  }
  void post(uint64_t cookie, uint32_t flags = 0) {
    CHECK(ep->post_rdma_write({&kSegment, 1}, cookie, kRemote, flags).has_value());
  }
  void complete() { fake_device::complete(ep->qp_num()); }
  void post_software() { CHECK(evd.post_software(kSomething).has_value()); }
  // True if the wait brought an event.
  bool wait(uint32_t timeout_us, uint32_t threshold = 1) {
    return wait_for_event(evd, timeout_us, threshold, event, more).has_value();
  }
  uint64_t sleeps() const { return count(evd, EvdCounter::kWaitBlocked); }
  uint64_t awakenings() const { return count(evd, EvdCounter::kWaitNotify); }

  fake_device::Ia ia = (fake_device::reset(), fake_device::Ia(false));
  Evd& evd = ia.evd(64, kEvdDto | kEvdSoftware);
  Ep* ep = nullptr;
  Event event{};
  uint32_t more = 0;
};

// The device does not notify of a completion that is on the CQ already.
void evd_wait__a_completion_before_the_arming() {
  Rig rig;
  rig.post(1);
  fake_device::state.before_arming = [&] { rig.complete(); };
  CHECK(rig.wait(kLong_us));
  CHECK_EQUAL(rig.event.dto.user_cookie, 1);
  CHECK_EQUAL(rig.sleeps(), 0);
}

void evd_wait__a_completion_after_the_last_look() {
  Rig rig;
  rig.post(1);
  fake_device::state.before_arming = [&] { fake_device::state.after_poll = [&] { rig.complete(); }; };
  CHECK(rig.wait(kLong_us));
  CHECK_EQUAL(rig.event.dto.user_cookie, 1);
  CHECK_EQUAL(rig.awakenings(), 1);
}

void evd_wait__a_software_event_before_it_counts_as_asleep() {
  Rig rig;
  fake_device::state.after_poll = [&] { rig.post_software(); };
  CHECK(rig.wait(kLong_us));
  CHECK_EQUAL(rig.event.software, kSomething);
  CHECK_EQUAL(rig.sleeps(), 0);
}

void evd_wait__a_software_event_while_it_arms() {
  Rig rig;
  fake_device::state.before_arming = [&] { rig.post_software(); };
  CHECK(rig.wait(kLong_us));
  CHECK_EQUAL(rig.event.software, kSomething);
  CHECK_EQUAL(rig.awakenings(), 1);
}

// The EVDs beyond the first 256 share a channel and sleep on a semaphore.
void evd_wait__a_software_event_while_it_arms_the_shared_channel() {
  Rig rig;
  for (int i = 0; i < 256; ++i) rig.ia.evd(8);
  Evd& last = rig.ia.evd(8, kEvdDto | kEvdSoftware);
  fake_device::state.before_arming = [&] { CHECK(last.post_software(kSomething).has_value()); };
  CHECK(wait_for_event(last, kLong_us, 1, rig.event, rig.more).has_value());
  CHECK_EQUAL(count(last, EvdCounter::kWaitNotify), 1);
}

void evd_wait__unwaitable_while_it_arms() {
  Rig rig;
  fake_device::state.before_arming = [&] { rig.evd.set_waitable(false); };
  const auto result = wait_for_event(rig.evd, kLong_us, 1, rig.event, rig.more);
  CHECK(!result && result.error() == (Error{Type::kInvalidState, Subtype::kEvdUnwaitable}));
}

// set_waitable() does not see this thread asleep, so it does not wake the thread.
void evd_wait__unwaitable_just_before_the_sleep() {
  Rig rig;
  fake_device::state.after_poll = [&] { rig.evd.set_waitable(false); };
  const auto result = wait_for_event(rig.evd, kLong_us, 2, rig.event, rig.more);
  CHECK(!result && result.error() == (Error{Type::kInvalidState, Subtype::kEvdUnwaitable}));
  CHECK_EQUAL(rig.sleeps(), 0);
}

void evd_wait__unwaitable_just_before_the_sleep_without_a_channel() {
  Rig rig;
  for (int i = 0; i < 256; ++i) rig.ia.evd(8);
  Evd& last = rig.ia.evd(8);
  fake_device::state.after_poll = [&] { last.set_waitable(false); };
  const auto result = wait_for_event(last, kLong_us, 2, rig.event, rig.more);
  CHECK(!result && result.error() == (Error{Type::kInvalidState, Subtype::kEvdUnwaitable}));
  CHECK_EQUAL(count(last, EvdCounter::kWaitBlocked), 0);
}

void evd_set_waitable__ends_a_sleep() {
  Rig rig;
  std::thread other([&] {
    while (rig.sleeps() == 0) std::this_thread::yield();
    rig.evd.set_waitable(false);
  });
  const auto result = wait_for_event(rig.evd, kLong_us, 1, rig.event, rig.more);
  other.join();
  CHECK(!result && result.error() == (Error{Type::kInvalidState, Subtype::kEvdUnwaitable}));
  CHECK_EQUAL(rig.awakenings(), 1);
}

// The waiting thread learns of the first call although the second one comes before it looks.
void evd_set_waitable__for_a_moment_ends_a_wait() {
  Rig rig;
  const auto for_a_moment = [](Evd& evd) {
    evd.set_waitable(false);
    evd.set_waitable(true);
  };
  const auto is_refused = [&](Evd& evd, uint32_t threshold) {
    const auto result = wait_for_event(evd, kLong_us, threshold, rig.event, rig.more);
    return !result && result.error() == Error{Type::kInvalidState, Subtype::kEvdUnwaitable};
  };
  fake_device::state.before_arming = [&] { for_a_moment(rig.evd); };
  CHECK(is_refused(rig.evd, 1));
  fake_device::state.after_poll = [&] { for_a_moment(rig.evd); };
  CHECK(is_refused(rig.evd, 2));
  for (int i = 0; i < 256; ++i) rig.ia.evd(8);
  Evd& last = rig.ia.evd(8);
  fake_device::state.before_arming = [&] { for_a_moment(last); };
  CHECK(is_refused(last, 1));
  CHECK(!rig.wait(0));
}

// dat_ep_create: recv_completion_flags are about receives only.
void evd_wait__a_request_on_an_evd_for_solicited_receives() {
  fake_device::reset();
  fake_device::state.holds = true;
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(64);
  Ep& ep = ia.connected_ep({.recv = &evd, .request = &evd}, {.recv_completion_flags = kSolicitedWait});
  CHECK(ep.post_rdma_write({&kSegment, 1}, 1, kRemote, 0).has_value());
  fake_device::state.before_arming = [&] {
    fake_device::state.after_poll = [&] { fake_device::complete(ep.qp_num()); };
  };
  Event event;
  uint32_t more;
  CHECK(wait_for_event(evd, kLong_us, 1, event, more).has_value());
  CHECK_EQUAL(event.dto.user_cookie, 1);
  CHECK_EQUAL(count(evd, EvdCounter::kWaitNotify), 1);
}

// A thread sleeps already when an EP begins to use the EVD for its requests.
void evd_wait__a_request_of_an_ep_made_meanwhile() {
  fake_device::reset();
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(64);
  ia.connected_ep({.recv = &evd}, {.recv_completion_flags = kSolicitedWait});
  std::atomic<bool> ended = false;
  std::thread other([&] {
    while (count(evd, EvdCounter::kWaitBlocked) == 0) std::this_thread::yield();
    Ep& ep = ia.connected_ep({.request = &evd}, {});
    while (count(evd, EvdCounter::kWaitBlocked) == 1 && !ended) std::this_thread::yield();
    CHECK(ep.post_rdma_write({&kSegment, 1}, 1, kRemote, 0).has_value());
  });
  Event event;
  uint32_t more;
  CHECK(wait_for_event(evd, kLong_us, 1, event, more).has_value());
  ended = true;
  other.join();
  CHECK_EQUAL(event.dto.user_cookie, 1);
  CHECK_EQUAL(count(evd, EvdCounter::kWaitNotify), 2);
}

void evd_wait__an_unsolicited_receive_does_not_wake() {
  fake_device::reset();
  fake_device::state.holds = true;
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(64);
  Ep& ep = ia.connected_ep({.recv = &evd}, {.recv_completion_flags = kSolicitedWait});
  CHECK(ep.post_recv({&kSegment, 1}, 1, 0).has_value());
  fake_device::state.before_arming = [&] {
    fake_device::state.after_poll = [&] { fake_device::complete(ep.qp_num()); };
  };
  Event event;
  uint32_t more;
  CHECK(wait_for_event(evd, kShort_us, 1, event, more).has_value());
  CHECK_EQUAL(count(evd, EvdCounter::kWaitNotify), 0);
}

// A device that forgets to notify: the look at the time-out finds the event.
void evd_wait__the_last_look() {
  Rig rig;
  rig.post(1);
  fake_device::state.deaf = true;
  fake_device::state.before_arming = [&] { fake_device::state.after_poll = [&] { rig.complete(); }; };
  CHECK(rig.wait(kShort_us));
  CHECK_EQUAL(rig.event.dto.user_cookie, 1);
  CHECK_EQUAL(rig.awakenings(), 0);
}

// uDAPL 2.0 6.6.16: an unsignalled completion does not end a wait, but it is an event.
void evd_wait__an_unsignalled_completion_at_the_time_out() {
  Rig rig({.request_completion_flags = kUnsignalled});
  rig.post(1, kUnsignalled);
  fake_device::state.after_poll = [&] { rig.complete(); };
  CHECK(rig.wait(kShort_us));
  CHECK_EQUAL(rig.event.dto.user_cookie, 1);
  CHECK(rig.sleeps() > 0);
}

// A signalled completion that waits already does not make a later unsignalled one end the wait.
void evd_wait__an_unsignalled_completion_reaches_a_threshold() {
  Rig rig({.request_completion_flags = kUnsignalled});
  rig.post(1);
  rig.complete();
  rig.post(2, kUnsignalled);
  fake_device::state.before_arming = [&] { rig.complete(); };
  const int64_t start = now_ns();
  CHECK(rig.wait(kShort_us, 2));
  CHECK(now_ns() - start >= kShort_us * int64_t{1000});
  CHECK_EQUAL(rig.event.dto.user_cookie, 1);
  CHECK_EQUAL(rig.more, 1);
}

// One event of two comes while the thread sleeps.
void evd_wait__the_time_out_counts_from_the_beginning() {
  Rig rig;
  constexpr int64_t kPause_ns = 5'000'000;
  fake_device::state.before_arming = [&] { rig.post_software(); };
  sleeps_left_ns.clear();
  after_sleep = [] { usleep(kPause_ns / 1000); };
  CHECK(!rig.wait(20 * kShort_us, 2));  // longer than a busy machine stops the thread
  CHECK(sleeps_left_ns.size() >= 2 && sleeps_left_ns[1] <= sleeps_left_ns[0] - kPause_ns);
}

// Software iWARP: the provider flushes what is posted to a disconnected EP, before the wait counts the events.
void evd_wait__flushed_receives_reach_a_threshold() {
  fake_device::reset();
  fake_device::state.vendor_id = 0x626d74;
  fake_device::state.transport = IBV_TRANSPORT_IWARP;
  fake_device::Ia ia(false);
  Evd& evd = ia.evd(16);
  Ep& ep = ia.connected_ep({.recv = &evd}, {});
  {
    std::lock_guard guard(control_mutex());
    CHECK(ep.disconnect(true).has_value());
  }
  Event event;
  uint32_t more = 0;
  while (ep.state() != EpState::kDisconnected)
    CHECK(wait_for_event(*ep.evds().connect, kLong_us, 1, event, more).has_value());
  for (uint64_t i = 0; i < 3; ++i) CHECK(ep.post_recv({&kSegment, 1}, i, 0).has_value());
  CHECK(wait_for_event(evd, kLong_us, 3, event, more).has_value());
  CHECK(event.dto.status == DtoStatus::kFlushed);
  CHECK_EQUAL(more, 2);
  CHECK_EQUAL(count(evd, EvdCounter::kWaitBlocked), 0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(evd_wait__a_completion_before_the_arming),
      TEST_IN_CHILD(evd_wait__a_completion_after_the_last_look),
      TEST_IN_CHILD(evd_wait__a_software_event_before_it_counts_as_asleep),
      TEST_IN_CHILD(evd_wait__a_software_event_while_it_arms),
      TEST_IN_CHILD(evd_wait__a_software_event_while_it_arms_the_shared_channel),
      TEST_IN_CHILD(evd_wait__unwaitable_while_it_arms),
      TEST_IN_CHILD(evd_wait__unwaitable_just_before_the_sleep),
      TEST_IN_CHILD(evd_wait__unwaitable_just_before_the_sleep_without_a_channel),
      TEST_IN_CHILD(evd_set_waitable__ends_a_sleep),
      TEST_IN_CHILD(evd_set_waitable__for_a_moment_ends_a_wait),
      TEST_IN_CHILD(evd_wait__a_request_on_an_evd_for_solicited_receives),
      TEST_IN_CHILD(evd_wait__a_request_of_an_ep_made_meanwhile),
      TEST_IN_CHILD(evd_wait__an_unsolicited_receive_does_not_wake),
      TEST_IN_CHILD(evd_wait__the_last_look),
      TEST_IN_CHILD(evd_wait__an_unsignalled_completion_at_the_time_out),
      TEST_IN_CHILD(evd_wait__an_unsignalled_completion_reaches_a_threshold),
      TEST_IN_CHILD(evd_wait__the_time_out_counts_from_the_beginning),
      TEST_IN_CHILD(evd_wait__flushed_receives_reach_a_threshold),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
