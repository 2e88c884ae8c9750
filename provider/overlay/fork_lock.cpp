// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/overlay/fork_lock.hpp"

namespace dapple::provider {
namespace {

pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void before_fork() {
  pthread_rwlock_wrlock(&lock);
}

void after_fork_in_parent() {
  pthread_rwlock_unlock(&lock);
}

void after_fork_in_child() {
  // Held in the name of the parent's thread, whose number the child's does not have: it cannot be unlocked here. The
  // child has one thread, so nobody waits for it either.
  const pthread_rwlock_t fresh = PTHREAD_RWLOCK_INITIALIZER;
  lock = fresh;
}

pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;
bool prepared;

}  // namespace

bool prepare_for_forks() {
  pthread_mutex_lock(&preparing);
  if (!prepared) prepared = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
  const bool done = prepared;
  pthread_mutex_unlock(&preparing);
  return done;
}

ReadLock::ReadLock() {
  pthread_rwlock_rdlock(&lock);
}
ReadLock::~ReadLock() {
  pthread_rwlock_unlock(&lock);
}
WriteLock::WriteLock() {
  pthread_rwlock_wrlock(&lock);
}
WriteLock::~WriteLock() {
  pthread_rwlock_unlock(&lock);
}

}  // namespace dapple::provider
