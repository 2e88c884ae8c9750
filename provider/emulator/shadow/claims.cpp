// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow/claims.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cassert>

#include "provider/emulator/shadow/say.hpp"

namespace dapple::provider {
namespace {

// Of this process; a child of fork() closes it, because the locks would outlive the parent there.
int file = -1;

void close_in_child() {
  if (file >= 0) close(file);
  file = -1;
}

// The result of fcntl(). type: out, for F_OFD_GETLK.
int lock_bytes(int command, short* type, uint64_t first, uint64_t count) {
  struct flock lock = {};
  lock.l_type = *type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(first);
  lock.l_len = static_cast<off_t>(count);
  const int result = fcntl(file, command, &lock);
  *type = lock.l_type;
  return result;
}

}  // namespace

Claims::~Claims() {
  close_in_child();
}

bool Claims::open() {
  if (file >= 0) return true;
  static const bool watches_forks = pthread_atfork(nullptr, nullptr, close_in_child) == 0;
  Dl_info self;
  if (!watches_forks || dladdr(reinterpret_cast<void*>(&lock_bytes), &self) == 0) return false;
  file = ::open(self.dli_fname, O_RDONLY | O_CLOEXEC);
  return file >= 0;
}

// A file that is open for reading takes locks for readers only, so the claim comes before the look. Two processes that
// claim at the same time may both be refused.
bool Claims::claim(uint64_t first, uint64_t count) {
  assert(count > 0);
  static bool said = false;
  short type = F_RDLCK;
  if (!open() || lock_bytes(F_OFD_SETLK, &type, first, count) != 0) {
    if (!said) say("shared memory that another process registers, too, is not found: the emulator's file has no locks");
    said = true;
    return true;
  }
  type = F_WRLCK;
  if (lock_bytes(F_OFD_GETLK, &type, first, count) != 0 || type == F_UNLCK) return true;
  give_up(first, count);
  return false;
}

void Claims::give_up(uint64_t first, uint64_t count) {
  // To the kernel, a length of 0 is the rest of the file.
  assert(count > 0);
  short type = F_UNLCK;
  if (file >= 0) lock_bytes(F_OFD_SETLK, &type, first, count);
}

}  // namespace dapple::provider
