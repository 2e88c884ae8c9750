// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Threads that take locks in a wrong order end, in builds with asserts: this test has them.
#include "provider/common/lock_order.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include "provider/common/mutex.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;

namespace {

Mutex first{LockRank::kContexts};
Mutex second{LockRank::kTimers};
Mutex same{LockRank::kTimers};
Mutex last_one{static_cast<LockRank>(kLockRanks - 1)};
Mutex one_of_family{LockRank::kPostedSends};
Mutex another_of_family{LockRank::kPostedSends};
Mutex one_of_program{LockRank::kPolling};
Mutex another_of_program{LockRank::kPosting};
BiasedMutex receiving{LockRank::kReceiving};
BiasedMutex queue_pair{LockRank::kQueuePair};

// The signal that ends a child which does this; 0 if it comes to its end.
template <typename Action>
int end_of(Action action) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGABRT, SIG_DFL);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0 || dup2(nowhere, STDERR_FILENO) < 0) _exit(1);
    action();
    _exit(0);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void lock__in_order__goes_on(void**) {
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(first);
                     { const std::lock_guard inner(second); }
                     { const std::lock_guard inner(same); }
                   }),
                   0);
}

void lock__against_the_order__dies(void**) {
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(second);
                     const std::lock_guard inner(first);
                   }),
                   SIGABRT);
}

void lock__the_last_of_the_list__after_all_others(void**) {
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(first);
                     const std::lock_guard inner(last_one);
                   }),
                   0);
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(last_one);
                     const std::lock_guard inner(first);
                   }),
                   SIGABRT);
}

void last_of__any_rank__is_found(void**) {
  for (unsigned i = 0; i < 128; ++i) {
    const RankSet set = RankSet{1} << i;
    assert_int_equal(static_cast<unsigned>(last_of(set | 1)), i);
    assert_int_equal(static_cast<unsigned>(last_of(set | (set - 1))), i);
  }
}

void lock__two_of_one_rank__dies(void**) {
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(second);
                     const std::lock_guard inner(same);
                   }),
                   SIGABRT);
}

// Nobody is there to wait for, and still the order is wrong.
void try_lock__against_the_order__dies(void**) {
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(second);
                     if (first.try_lock()) first.unlock();
                   }),
                   SIGABRT);
}

void lock__after_an_unlock__goes_on(void**) {
  assert_int_equal(end_of([] {
                     second.lock();
                     second.unlock();
                     const std::lock_guard lock(first);
                   }),
                   0);
}

void lock__biased_ones_against_the_order__dies(void**) {
  assert_int_equal(end_of([] {
                     const BiasedLock lock(queue_pair);
                     const BiasedLock inner(receiving);
                   }),
                   SIGABRT);
  assert_int_equal(end_of([] {
                     const BiasedLock lock(queue_pair);
                     if (receiving.try_lock()) receiving.unlock();
                   }),
                   SIGABRT);
  // Also if the thread is the lock's favourite, which takes it by plain stores.
  assert_int_equal(end_of([] {
                     prepare_heavy_barriers();
                     for (int i = 0; i < 1000; ++i) {
                       const BiasedLock outer(receiving);
                       const BiasedLock inner(queue_pair);
                     }
                     const BiasedLock lock(queue_pair);
                     const BiasedLock inner(receiving);
                   }),
                   SIGABRT);
}

void lock__biased_ones_in_order__goes_on(void**) {
  assert_int_equal(end_of([] {
                     const BiasedLock lock(receiving);
                     const BiasedLock inner(queue_pair);
                     assert_held(receiving);
                     assert_held(queue_pair);
                   }),
                   0);
}

void lock__a_family__only_around_a_fork(void**) {
  const auto both = [] {
    const std::lock_guard lock(one_of_family);
    const std::lock_guard inner(another_of_family);
  };
  assert_int_equal(end_of(both), SIGABRT);
  assert_int_equal(end_of([&] {
                     LockOrder::forks(true);
                     both();
                   }),
                   0);
}

void lock__a_programs_lock__before_all_others(void**) {
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(another_of_program);
                     const std::lock_guard inner(one_of_program);
                     const std::lock_guard last(first);
                   }),
                   0);
  assert_int_equal(end_of([] {
                     const std::lock_guard lock(first);
                     const std::lock_guard inner(one_of_program);
                   }),
                   SIGABRT);
}

void unlock__by_another_thread__dies(void**) {
  assert_int_equal(end_of([] {
                     first.lock();
                     std::thread([] { first.unlock(); }).join();
                   }),
                   SIGABRT);
}

void assert_held__by_another_thread_or_nobody__dies(void**) {
  assert_int_equal(end_of([] { assert_held(first); }), SIGABRT);
  assert_int_equal(end_of([] { assert_held(receiving); }), SIGABRT);
  assert_int_equal(end_of([] {
                     const BiasedLock lock(receiving);
                     std::thread([] { assert_held(receiving); }).join();
                   }),
                   SIGABRT);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(lock__in_order__goes_on),
      cmocka_unit_test(lock__against_the_order__dies),
      cmocka_unit_test(lock__the_last_of_the_list__after_all_others),
      cmocka_unit_test(last_of__any_rank__is_found),
      cmocka_unit_test(lock__two_of_one_rank__dies),
      cmocka_unit_test(try_lock__against_the_order__dies),
      cmocka_unit_test(lock__after_an_unlock__goes_on),
      cmocka_unit_test(lock__biased_ones_against_the_order__dies),
      cmocka_unit_test(lock__biased_ones_in_order__goes_on),
      cmocka_unit_test(lock__a_family__only_around_a_fork),
      cmocka_unit_test(lock__a_programs_lock__before_all_others),
      cmocka_unit_test(unlock__by_another_thread__dies),
      cmocka_unit_test(assert_held__by_another_thread_or_nobody__dies),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
