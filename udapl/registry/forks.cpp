// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Keeps a child of fork() from finding our locks held by threads that it does not have.
#include <pthread.h>

#include <memory>
#include <mutex>

#include "udapl/common/fork_token.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/registry.hpp"

namespace dapple::registry {
namespace {

constinit udapl::common::ForkToken token;

void before_fork() {
  if (!token.take()) return;
  registry().before_fork();
  ia_table().before_fork();
}

void after_fork_in_parent() {
  if (token.is_mine()) {
    ia_table().after_fork_in_parent();
    registry().after_fork_in_parent();
  }
  token.give_back();
}

void after_fork_in_child() {
  bool has_all = token.is_mine();
  if (has_all) {
    const bool has_table = ia_table().after_fork_in_child();
    const bool has_registry = registry().after_fork_in_child();
    has_all = has_table && has_registry;
  }
  if (!has_all) registry().give_up();
  token.give_back();
}

[[gnu::constructor]] void prepare_when_loaded() {
  (void)registry();
  (void)ia_table();
  (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

void Registry::before_fork() {
  fork_has_loading_ = !given_up_ && loading_mutex_.try_lock();
  fork_has_mutex_ = !given_up_ && mutex_.try_lock();
}

void Registry::after_fork_in_parent() {
  if (fork_has_mutex_) mutex_.unlock();
  if (fork_has_loading_) loading_mutex_.unlock();
}

bool Registry::after_fork_in_child() {
  if (fork_has_mutex_) mutex_.unlock();
  if (fork_has_loading_) {
    // A recursive lock knows its owner by a thread id, which differs in the child, so unlocking fails there; only a
    // sanitizer notices. If a provider's init or fini forks, later unlocks fail as well.
    loading_mutex_.unlock();
    std::construct_at(&loading_mutex_);
  }
  return fork_has_mutex_ && fork_has_loading_;
}

void IaTable::before_fork() {
  fork_has_mutex_ = mutex_.try_lock();
}

void IaTable::after_fork_in_parent() {
  if (fork_has_mutex_) mutex_.unlock();
}

bool IaTable::after_fork_in_child() {
  if (!fork_has_mutex_) return false;
  for (Open& open : open_) open.pins = 0;
  std::construct_at(&unpinned_);  // no thread waits here
  mutex_.unlock();
  return true;
}

}  // namespace dapple::registry
