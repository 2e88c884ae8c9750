// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// CNOs over EVDs of software events: waiting, agents, the descriptor, enabling and moving.
#include "udapl/core/events/cno.hpp"

#include <poll.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/unit/udapl-core/fixture.hpp"
#include "tests/unit/udapl-core/take_event.hpp"
#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/core/clock.hpp"

using namespace dapple::udapl;

namespace {

constexpr uint32_t kLong_us = 20'000'000;
constexpr uint32_t kShort_us = 20'000;

void post(Evd& evd) {
  CHECK(evd.post_software(nullptr).has_value());
}

void drain(Evd& evd) {
  for (Event event; take_event(evd, event);) {
  }
}

void await_waiters(const Notifier& notifier, uint32_t count) {
  while (notifier.waiters() < count) std::this_thread::yield();
}

struct OpenCno {
  explicit OpenCno(Ia& ia, const WaitAgent& agent = {}) : cno(Cno::create(ia, agent, false).value()) {}
  ~OpenCno() {
    Notifier::Threads agents;
    CHECK(Cno::free(*cno, false, agents).has_value());
    Notifier::join(agents);
  }
  Cno* cno;
  std::shared_ptr<Notifier> notifier = cno->notifier();

  bool got(const Evd& evd, uint32_t timeout_us = kLong_us) {
    const auto found = notifier->wait(timeout_us);
    return found && *found == &evd;
  }
  bool empty(uint32_t timeout_us = 0) {
    const auto found = notifier->wait(timeout_us);
    return !found && found.error() == Error{Type::kQueueEmpty};
  }
};

struct Fixture {
  no_device::OpenIa ia{true};
  OpenCno cno{ia.get()};
  no_device::OpenEvd open{ia.get(), 8};
  no_device::OpenEvd open_other{ia.get(), 8};
  Evd& evd = open.get();
  Evd& other = open_other.get();
  Fixture() {
    CHECK(evd.set_cno(cno.cno).has_value());
    CHECK(other.set_cno(cno.cno).has_value());
  }
};

void cno_wait__names_each_evd_that_has_triggered() {
  Fixture f;
  CHECK(f.cno.empty());
  post(f.other);
  post(f.evd);
  post(f.evd);
  CHECK(f.cno.got(f.other));
  CHECK(f.cno.got(f.evd));
  CHECK(f.cno.empty());
  post(f.evd);
  CHECK(f.cno.got(f.evd));
}

void cno_wait__one_deadline_in_microseconds() {
  Fixture f;
  for (const uint32_t timeout_us : {0U, 1U, 1500U, kShort_us}) {
    const int64_t start = now_ns();
    CHECK(f.cno.empty(timeout_us));
    CHECK(now_ns() - start >= int64_t{timeout_us} * 1000);
  }
}

void cno_wait__wakes() {
  Fixture f;
  std::thread waiter([&] { CHECK(f.cno.got(f.evd)); });
  await_waiters(*f.cno.notifier, 1);
  post(f.evd);
  waiter.join();
}

void cno_wait__none_lost_between_threads() {
  Fixture f;
  constexpr int kEach = 5000;
  std::thread posters[2];
  Evd* evds[2] = {&f.evd, &f.other};
  for (int p = 0; p < 2; ++p) {
    posters[p] = std::thread([evd = evds[p]] {
      for (int i = 0; i < kEach; ++i) {
        while (!evd->post_software(nullptr)) std::this_thread::yield();
      }
    });
  }
  int taken = 0;
  while (taken < 2 * kEach) {
    const auto found = f.cno.notifier->wait(kLong_us);
    CHECK(found.has_value());
    if (!found) break;
    for (Event event; take_event(**found, event);) ++taken;
  }
  for (auto& poster : posters) poster.join();
  CHECK_EQUAL(taken, 2 * kEach);
}

void evd_disable__triggers_nothing_until_enabled() {
  Fixture f;
  post(f.evd);
  CHECK(f.evd.set_enabled(false).has_value());
  post(f.evd);
  CHECK(f.cno.empty(kShort_us));
  CHECK(!f.evd.enabled());
  CHECK(f.evd.set_enabled(true).has_value());
  CHECK(f.cno.got(f.evd));  // about the events meanwhile
  drain(f.evd);
  CHECK(f.evd.set_enabled(false).has_value());
  CHECK(f.evd.set_enabled(true).has_value());
  CHECK(f.cno.empty());
}

void evd_modify_cno__moves() {
  Fixture f;
  OpenCno second(f.ia.get());
  post(f.evd);
  CHECK(f.evd.set_cno(second.cno).has_value());
  CHECK(f.cno.empty());
  CHECK(second.got(f.evd));
  drain(f.evd);
  post(f.evd);
  CHECK(second.got(f.evd));
  CHECK(f.cno.empty());
  CHECK(f.evd.set_cno(nullptr).has_value());
  post(f.evd);
  CHECK(second.empty(kShort_us));
  CHECK(f.evd.set_cno(second.cno).has_value());
  CHECK(second.got(f.evd));
  CHECK(f.evd.set_cno(nullptr).has_value());
}

void cno_free__while_evds_use_it() {
  Fixture f;
  Notifier::Threads agents;
  const auto freed = Cno::free(*f.cno.cno, false, agents);
  CHECK(!freed && freed.error() == (Error{Type::kInvalidState, Subtype::kCnoInUse}));
}

void evd_wait__comes_before_the_cno() {
  Fixture f;
  std::thread waiter([&] {
    Event event{};
    uint32_t more = 0;
    CHECK(wait_for_event(f.evd, kLong_us, 1, event, more).has_value());
  });
  while (!f.evd.has_waiter()) std::this_thread::yield();
  post(f.evd);
  waiter.join();
  CHECK(f.cno.empty());
  post(f.evd);
  CHECK(f.cno.got(f.evd));
}

// Either the waiter or the CNO gets an event that arrives as a waiter leaves.
void evd_wait__timing_out_loses_nothing() {
  Fixture f;
  for (int i = 0; i < 500; ++i) {
    std::atomic<bool> seen = false;
    std::thread waiter([&] {
      Event event{};
      uint32_t more = 0;
      seen = wait_for_event(f.evd, static_cast<uint32_t>(i % 60), 1, event, more).has_value();
    });
    post(f.evd);
    waiter.join();
    if (seen) {
      (void)f.cno.notifier->take();
    } else {
      CHECK(f.cno.got(f.evd));
      drain(f.evd);
    }
  }
}

// The same if the CNO is set at the moment at which the waiter leaves.
void evd_modify_cno__beside_a_waiter_on_its_way_out() {
  no_device::OpenIa ia;
  OpenCno cno(ia.get());
  no_device::OpenEvd open(ia.get(), 8);
  Evd& evd = open.get();
  std::atomic<uint32_t> begun = 0;
  std::atomic<uint32_t> ended = 0;
  std::atomic<bool> done = false;
  uint32_t seen = 0;
  std::thread waiter([&] {
    for (uint32_t round = 1; !done; ++round) {
      while (begun < round && !done) {
      }
      Event event;
      (void)wait_for_event(evd, 0, 2, event, seen);  // never more than one
      ended = round;
    }
  });
  uint32_t lost = 0;
  const int64_t until = now_ns() + 1'000'000'000;
  for (uint32_t round = 1; !lost && now_ns() < until; ++round) {
    begun = round;
    for (uint32_t i = 0; i < round % 256; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    CHECK(evd.set_cno(cno.cno).has_value());
    post(evd);
    while (ended < round) {
    }
    if (!cno.notifier->take() && !seen) ++lost;
    CHECK(evd.set_cno(nullptr).has_value());
    drain(evd);
  }
  CHECK_EQUAL(lost, 0);
  done = true;
  waiter.join();
}

#ifndef __SANITIZE_THREAD__  // it ignores mutexes that a thread locks after it was cancelled in ppoll()
void cno_wait__cancelled_leaves_nothing_behind() {
  Fixture f;
  pthread_t waiter;
  const auto run = [](void* notifier) -> void* {
    (void)static_cast<Notifier*>(notifier)->wait(Evd::kInfinite);
    return nullptr;
  };
  CHECK_EQUAL(pthread_create(&waiter, nullptr, run, f.cno.notifier.get()), 0);
  await_waiters(*f.cno.notifier, 1);
  CHECK_EQUAL(pthread_cancel(waiter), 0);
  void* result = nullptr;
  CHECK_EQUAL(pthread_join(waiter, &result), 0);
  CHECK(result == PTHREAD_CANCELED);
  CHECK_EQUAL(f.cno.notifier->waiters(), 0);
  post(f.evd);
  CHECK(f.cno.got(f.evd));
}
#endif

void cno__everybody_learns_that_the_last_evd_has_gone() {
  no_device::OpenIa ia(true);
  OpenCno cno(ia.get());
  std::thread waiters[3];
  {
    no_device::OpenEvd open(ia.get(), 4);
    no_device::OpenEvd disabled(ia.get(), 4);
    CHECK(open.get().set_cno(cno.cno).has_value());
    CHECK(disabled.get().set_enabled(false).has_value());
    CHECK(disabled.get().set_cno(cno.cno).has_value());
    for (auto& waiter : waiters) {
      waiter = std::thread([&] {
        const auto found = cno.notifier->wait(kLong_us);
        CHECK(found && *found == nullptr);
      });
    }
    await_waiters(*cno.notifier, 3);
  }
  for (auto& waiter : waiters) waiter.join();
  CHECK(cno.empty());
}

void cno__closing_releases_waiters() {
  no_device::OpenIa ia(true);
  std::thread waiters[3];
  {
    OpenCno cno(ia.get());
    for (auto& waiter : waiters) {
      waiter = std::thread([notifier = cno.notifier] {
        const auto found = notifier->wait(Evd::kInfinite);
        CHECK(found && *found == nullptr);
      });
    }
    await_waiters(*cno.notifier, 3);
  }
  for (auto& waiter : waiters) waiter.join();
}

bool readable(int fd) {
  pollfd polled{fd, POLLIN, 0};
  return poll(&polled, 1, 0) == 1;
}

void cno_fd__is_readable_until_taken() {
  Fixture f;
  CHECK(!readable(f.cno.notifier->fd()));
  post(f.evd);
  post(f.other);
  CHECK(readable(f.cno.notifier->fd()));
  CHECK(f.cno.notifier->take().value() == &f.evd);
  CHECK(readable(f.cno.notifier->fd()));
  CHECK(f.cno.notifier->take().value() == &f.other);
  CHECK(!readable(f.cno.notifier->fd()));
  const auto none = f.cno.notifier->take();
  CHECK(!none && none.error() == Error{Type::kQueueEmpty});
}

struct Calls {
  std::mutex mutex;
  std::vector<void*> evds;
  std::thread::id thread;
  static void record(void* self, void* evd) {
    auto& calls = *static_cast<Calls*>(self);
    std::lock_guard guard(calls.mutex);
    calls.evds.push_back(evd);
    calls.thread = std::this_thread::get_id();
  }
  WaitAgent agent() { return {record, this}; }
  size_t count() {
    std::lock_guard guard(mutex);
    return evds.size();
  }
  bool reach(size_t wanted) {
    const int64_t deadline = now_ns() + 20'000'000'000;
    while (count() < wanted && now_ns() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return count() == wanted;
  }
};

void cno_agent__is_called_on_a_thread_of_ours_for_each() {
  Calls calls;
  no_device::OpenIa ia(true);
  OpenCno cno(ia.get(), calls.agent());
  {
    no_device::OpenEvd open(ia.get(), 8);
    CHECK(open.get().set_cno(cno.cno).has_value());
    post(open.get());
    CHECK(calls.reach(1));
    drain(open.get());
    post(open.get());
    CHECK(calls.reach(2));
    CHECK(calls.evds[0] == &open.get() && calls.evds[1] == &open.get());
    CHECK(calls.thread != std::this_thread::get_id());
  }
  CHECK(calls.reach(3));  // the last EVD was freed
  CHECK(calls.evds[2] == nullptr);
}

void cno_agent__and_a_waiter_both_learn() {
  Calls calls;
  no_device::OpenIa ia(true);
  OpenCno cno(ia.get(), calls.agent());
  no_device::OpenEvd open(ia.get(), 8);
  CHECK(open.get().set_cno(cno.cno).has_value());
  std::thread waiter([&] { CHECK(cno.got(open.get())); });
  await_waiters(*cno.notifier, 1);
  post(open.get());
  waiter.join();
  CHECK(calls.reach(1));
}

// An agent whose call goes on until it may end.
struct Slow {
  std::atomic<bool> called = false, may_end = false;
  WaitAgent agent() {
    return {[](void* self, void*) {
              auto& slow = *static_cast<Slow*>(self);
              slow.called = true;
              while (!slow.may_end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            },
            this};
  }
};

// The agent's thread may take two EVDs before a waiter runs. A thread that has got one waits no longer, so each has a
// waiter of its own.
void cno_agent__and_waiters_learn_of_each_evd() {
  Slow slow;
  no_device::OpenIa ia(true);
  OpenCno cno(ia.get(), slow.agent());
  no_device::OpenEvd first(ia.get(), 8), second(ia.get(), 8), third(ia.get(), 8);
  for (no_device::OpenEvd* open : {&first, &second, &third}) CHECK(open->get().set_cno(cno.cno).has_value());
  post(first.get());
  while (!slow.called) std::this_thread::yield();
  std::atomic<int> seconds = 0, thirds = 0;
  const auto wait = [&] {
    const auto found = cno.notifier->wait(kLong_us);
    CHECK(found.has_value());
    if (found && *found == &second.get()) ++seconds;
    if (found && *found == &third.get()) ++thirds;
  };
  std::thread waiters[] = {std::thread(wait), std::thread(wait)};
  await_waiters(*cno.notifier, 2);
  post(second.get());
  post(third.get());
  slow.may_end = true;
  for (auto& waiter : waiters) waiter.join();
  CHECK_EQUAL(seconds, 1);
  CHECK_EQUAL(thirds, 1);
}

void cno_modify_agent__takes_over_and_leaves() {
  Calls first;
  Calls second;
  Fixture f;
  f.cno.notifier->set_agent(first.agent());
  post(f.evd);
  CHECK(first.reach(1));
  f.cno.notifier->set_agent(second.agent());
  post(f.evd);
  CHECK(second.reach(1));
  CHECK_EQUAL(first.count(), 1);
  std::thread waiter([&] { CHECK(f.cno.got(f.evd)); });
  await_waiters(*f.cno.notifier, 1);
  f.cno.notifier->set_agent({});
  post(f.evd);
  waiter.join();
  CHECK_EQUAL(second.count(), 1);
  CHECK(f.cno.notifier->agent().function == nullptr);
}

// The new agent is called right after the former one, and waits for the thread that set it.
void cno_modify_agent__does_not_wait_for_the_new_agent() {
  Slow former, next;
  Fixture f;
  CHECK(f.cno.notifier->set_agent(former.agent()).has_value());
  post(f.evd);
  while (!former.called) std::this_thread::yield();
  post(f.other);
  std::atomic<bool> returned = false;
  std::thread modifier([&] {
    CHECK(f.cno.notifier->set_agent(next.agent()).has_value());
    returned = true;
  });
  while (f.cno.notifier->agent().instance_data != &next) std::this_thread::yield();
  CHECK(!returned);
  former.may_end = true;
  while (!next.called) std::this_thread::yield();
  for (int patience = 5000; !returned && patience; --patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(returned);
  next.may_end = true;
  modifier.join();
  CHECK(f.cno.notifier->set_agent({}).has_value());
}

// The agent ends itself before the waiter has taken the EVD that was passed on.
void cno_modify_agent__by_the_agent__the_waiter_learns_too() {
  Fixture f;
  const WaitAgent leaver = {[](void* notifier, void*) { static_cast<Notifier*>(notifier)->set_agent({}); },
                            f.cno.notifier.get()};
  for (int round = 0; round < 20; ++round) {
    CHECK(f.cno.notifier->set_agent(leaver).has_value());
    std::thread waiter([&] { CHECK(f.cno.got(f.evd)); });
    await_waiters(*f.cno.notifier, 1);
    post(f.evd);
    waiter.join();
    drain(f.evd);
    CHECK(f.cno.empty());
  }
}

void cno_modify_agent__after_the_last_evd__it_learns_of_the_end() {
  Calls calls;
  no_device::OpenIa ia(true);
  Cno* cno = Cno::create(ia.get(), {}, false).value();
  {
    no_device::OpenEvd open(ia.get(), 8);
    CHECK(open.get().set_cno(cno).has_value());
  }
  CHECK(cno->notifier()->set_agent(calls.agent()).has_value());
  Notifier::Threads agents;
  CHECK(Cno::free(*cno, true, agents).has_value());
  Notifier::join(agents);
  CHECK_EQUAL(calls.count(), 1);
  CHECK(calls.evds[0] == nullptr);
}

// An agent may do anything, even free its own CNO.
struct Suicide {
  Cno* cno = nullptr;
  Evd* evd = nullptr;
  std::atomic<bool> done = false;
  static void run(void* self, void* evd) {
    auto& it = *static_cast<Suicide*>(self);
    if (!evd) return;
    Notifier::Threads agents;
    CHECK(it.evd->set_cno(nullptr).has_value());
    CHECK(Cno::free(*it.cno, false, agents).has_value());
    Notifier::join(agents);
    it.done = true;
  }
};

void cno_agent__may_free_its_cno() {
  Suicide suicide;
  no_device::OpenIa ia(true);
  no_device::OpenEvd open(ia.get(), 8);
  suicide.evd = &open.get();
  suicide.cno = Cno::create(ia.get(), {}, false).value();
  CHECK(open.get().set_cno(suicide.cno).has_value());
  suicide.cno->notifier()->set_agent({Suicide::run, &suicide});
  post(open.get());
  while (!suicide.done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Another thread may close the CNO while its agent sets the next one.
void cno_modify_agent__of_a_closed_cno__is_refused() {
  no_device::OpenIa ia(true);
  Cno* const cno = Cno::create(ia.get(), {}, false).value();
  const std::shared_ptr<Notifier> notifier = cno->notifier();
  Notifier::Threads agents;
  CHECK(Cno::free(*cno, false, agents).has_value());
  CHECK(!notifier->set_agent({.function = [](void*, void*) {}, .instance_data = nullptr}).has_value());
  CHECK(agents.empty());
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(cno_modify_agent__of_a_closed_cno__is_refused),
      TEST(cno_wait__names_each_evd_that_has_triggered),
      TEST(cno_wait__one_deadline_in_microseconds),
      TEST(cno_wait__wakes),
      TEST(cno_wait__none_lost_between_threads),
      TEST(evd_disable__triggers_nothing_until_enabled),
      TEST(evd_modify_cno__moves),
      TEST(cno_free__while_evds_use_it),
      TEST(evd_wait__comes_before_the_cno),
      TEST(evd_wait__timing_out_loses_nothing),
      TEST(evd_modify_cno__beside_a_waiter_on_its_way_out),
#ifndef __SANITIZE_THREAD__
      TEST(cno_wait__cancelled_leaves_nothing_behind),
#endif
      TEST(cno__everybody_learns_that_the_last_evd_has_gone),
      TEST(cno__closing_releases_waiters),
      TEST(cno_fd__is_readable_until_taken),
      TEST(cno_agent__is_called_on_a_thread_of_ours_for_each),
      TEST(cno_agent__and_a_waiter_both_learn),
      TEST(cno_agent__and_waiters_learn_of_each_evd),
      TEST(cno_modify_agent__takes_over_and_leaves),
      TEST(cno_modify_agent__does_not_wait_for_the_new_agent),
      TEST(cno_modify_agent__by_the_agent__the_waiter_learns_too),
      TEST(cno_modify_agent__after_the_last_evd__it_learns_of_the_end),
      TEST(cno_agent__may_free_its_cno),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
