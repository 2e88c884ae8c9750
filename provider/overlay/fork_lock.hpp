// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The lock over everything that this process has attached. In a child of fork() it is free, and the data that it guards
// is consistent. A holder does nothing that takes long. A reader must not take the lock again: if a writer waits, that
// is a deadlock.
#pragma once

#include <pthread.h>

namespace dapple::provider {

// Registers the handlers for fork(), if that failed when the library was loaded. Call it before the lock is first
// taken. False without memory.
bool prepare_for_forks();

class ReadLock {
 public:
  ReadLock();
  ~ReadLock();
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;
};

class WriteLock {
 public:
  WriteLock();
  ~WriteLock();
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;
};

}  // namespace dapple::provider
