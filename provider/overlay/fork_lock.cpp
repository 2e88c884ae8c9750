// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/overlay/fork_lock.hpp"

namespace dapple::provider {
namespace {

// A writer holds `writers` and then `lock`, a reader only `lock`. A fork holds `writers`, so that the guarded data is
// consistent in the child. The child makes `lock` anew, because the parent's readers do not exist there. A waiting
// writer comes before later readers; otherwise syncs of many threads could make it wait without end.
pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

void before_fork() {
  pthread_mutex_lock(&writers);
}

void after_fork_in_parent() {
  pthread_mutex_unlock(&writers);
}

void after_fork_in_child() {
  lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
  pthread_mutex_unlock(&writers);
}

pthread_mutex_t preparing = PTHREAD_MUTEX_INITIALIZER;
bool prepared;

// The handler that was registered last runs first before a fork. A library that holds a lock of its own while it
// registers memory is linked with this library, so it is loaded later and registers its handler later. Then a fork also
// takes that lock before this one.
[[gnu::constructor]] void prepare_when_loaded() {
  (void)prepare_for_forks();
}

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
  pthread_mutex_lock(&writers);
  pthread_rwlock_wrlock(&lock);
}
WriteLock::~WriteLock() {
  pthread_rwlock_unlock(&lock);
  pthread_mutex_unlock(&writers);
}

}  // namespace dapple::provider
