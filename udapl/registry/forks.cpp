// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A child of fork() must not find our locks held by threads that it does not have.
#include <pthread.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/registry.hpp"

namespace dapple::dat {
namespace {

constexpr std::chrono::milliseconds kPatience{100};
constexpr std::chrono::microseconds kPause{20};

constinit std::mutex one_at_a_time;

void before_fork() {
  one_at_a_time.lock();
  registry().before_fork();
  ia_table().before_fork();
}

void after_fork_in_parent() {
  ia_table().after_fork_in_parent();
  registry().after_fork_in_parent();
  one_at_a_time.unlock();
}

void after_fork_in_child() {
  ia_table().after_fork_in_child();
  registry().after_fork_in_child();
  one_at_a_time.unlock();
}

// What is registered last runs first before a fork. Providers come after us, so that a fork has their locks when it
// asks for ours: they may call us under theirs, and what we hold while we call them is waited for in vain, but not for
// ever.
[[gnu::constructor]] void prepare_when_loaded() {
  (void)registry();
  (void)ia_table();
  (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

void Registry::before_fork() {
  // Not for ever: who holds it runs a provider's code, or the loader's, which may want what this fork holds already.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  fork_has_loading_ = !given_up_ && loading_mutex_.try_lock();
  while (!fork_has_loading_ && !given_up_ && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPause);
    fork_has_loading_ = loading_mutex_.try_lock();
  }
  mutex_.lock();
}

void Registry::after_fork_in_parent() {
  mutex_.unlock();
  if (fork_has_loading_) loading_mutex_.unlock();
}

void Registry::after_fork_in_child() {
  mutex_.unlock();
  if (!fork_has_loading_) {
    given_up_ = true;
    return;
  }
  // A recursive lock knows its owner by a number that is another in the child, and refuses to be unlocked: only a
  // sanitizer hears of it. Where a provider's init or fini forks, what is still to be unlocked is refused, too.
  loading_mutex_.unlock();
  std::construct_at(&loading_mutex_);
}

void IaTable::before_fork() {
  mutex_.lock();
}

void IaTable::after_fork_in_parent() {
  mutex_.unlock();
}

void IaTable::after_fork_in_child() {
  for (Open& open : open_) open.pins = 0;
  std::construct_at(&unpinned_);  // nobody waits here
  mutex_.unlock();
}

}  // namespace dapple::dat
