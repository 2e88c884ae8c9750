// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/process/program_memory.hpp"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#include "provider/preload/doors/process/descriptors.hpp"

namespace dapple::doors {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// False if the address is bad; `forbidden` is set if the system forbids these calls.
bool transfer(Transfer call, void* ours, uint64_t theirs, size_t size, bool& forbidden) {
  forbidden = false;
  if (size == 0) return true;
  const iovec here = {ours, size};
  const iovec there = {reinterpret_cast<void*>(static_cast<uintptr_t>(theirs)), size};
  const int saved = errno;
  const bool done = call(table_owner(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  forbidden = !done && (errno == EPERM || errno == ENOSYS);
  errno = saved;
  return done;
}

// This thread's stack, if it is known. The C library's answer costs more than a transfer, much more for the first
// thread of a process, so it is kept.
struct Stack {
  enum class State : uint8_t { kUnasked, kAsking, kKnown } state;
  uintptr_t begin, end;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit Stack stack = {};

void ask_for_stack() {
  // A signal handler that interrupts this function finds the stack unknown.
  stack.state = Stack::State::kAsking;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
    stack.begin = reinterpret_cast<uintptr_t>(lowest);
    stack.end = stack.begin + size;
    stack.state = Stack::State::kKnown;
  }
  pthread_attr_destroy(&attributes);
}

// Tells whether the bytes are in a caller's part of this thread's stack, which no system call needs to check: all of it
// exists and can be written. Programs call rdma_cm through librdmacm, which keeps commands and answers there.
bool is_on_stack(uint64_t address, size_t size) {
  if (stack.state != Stack::State::kKnown) return false;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here >= stack.begin && address > here && address < stack.end && size <= stack.end - address;
}

}  // namespace

void know_stack() {
  if (stack.state == Stack::State::kUnasked) ask_for_stack();
}

bool copy_from_program(void* to, uint64_t from, size_t size) {
  if (is_on_stack(from, size)) {
    memcpy(to, reinterpret_cast<const void*>(static_cast<uintptr_t>(from)), size);
    return true;
  }
  bool forbidden;
  if (transfer(process_vm_readv, to, from, size, forbidden)) return true;
  if (!forbidden || from == 0) return false;
  memcpy(to, reinterpret_cast<const void*>(static_cast<uintptr_t>(from)), size);
  return true;
}

bool copy_to_program(uint64_t to, const void* from, size_t size) {
  if (is_on_stack(to, size)) {
    memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(to)), from, size);
    return true;
  }
  bool forbidden;
  if (transfer(process_vm_writev, const_cast<void*>(from), to, size, forbidden)) return true;
  if (!forbidden || to == 0) return false;
  memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(to)), from, size);
  return true;
}

bool is_writable(uint64_t address, size_t size) {
  if (is_on_stack(address, size)) return true;
  // Copies the bytes to themselves.
  bool forbidden;
  if (transfer(process_vm_writev, reinterpret_cast<void*>(static_cast<uintptr_t>(address)), address, size, forbidden)) {
    return true;
  }
  return forbidden && address != 0;
}

}  // namespace dapple::doors
