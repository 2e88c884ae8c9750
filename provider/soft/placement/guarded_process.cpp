// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/guarded_process.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "provider/soft/ordered_copy.hpp"

namespace dapple::soft {
namespace {

constexpr size_t kWord = sizeof(uint64_t);

// Not the C library's functions: those are cancellation points.
int64_t write_to(pid_t process, const iovec* from, size_t from_count, const iovec* to, size_t to_count) {
  return syscall(SYS_process_vm_writev, process, from, from_count, to, to_count, 0ul);
}

int64_t read_from(pid_t process, const iovec* to, size_t to_count, const iovec* from, size_t from_count) {
  return syscall(SYS_process_vm_readv, process, to, to_count, from, from_count, 0ul);
}

iovec ours(const void* at, size_t size) {
  return {const_cast<void*>(at), size};
}

iovec theirs(uint64_t address, size_t size) {
  return {reinterpret_cast<void*>(address), size};  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

// Permissions, namespaces and security modules all may be in the way, so this tries it.
void GuardedProcess::open(pid_t process, const Guards& guards) {
  for (const uint64_t address : guards.addresses) {
    if (address == 0) return;
  }
  guards_ = guards;
  process_.store(process, std::memory_order_relaxed);
  uint64_t nonce = 0;
  const uint64_t nothing = 0;
  const bool reached = process > 0 && read(guards.addresses[0], reinterpret_cast<std::byte*>(&nonce), kWord) &&
                       nonce == guards.nonce &&
                       write(guards.addresses[0] + kWord, reinterpret_cast<const std::byte*>(&nothing), kWord);
  if (!reached) process_.store(0, std::memory_order_relaxed);
}

bool GuardedProcess::write(uint64_t address, const std::byte* from, size_t size) {
  const pid_t process = process_.load(std::memory_order_relaxed);
  if (process == 0) return false;
  const uint64_t words[kGuardPages] = {};
  const size_t last = size_of_last_word(address, size);
  const iovec sources[] = {ours(words, sizeof words), ours(from, size)};
  iovec targets[kGuardPages + 2];
  for (size_t i = 0; i < kGuardPages; i++) targets[i] = theirs(guards_.addresses[i] + kWord, kWord);
  targets[kGuardPages] = theirs(address, size - last);
  targets[kGuardPages + 1] = theirs(address + size - last, last);
  const int64_t copied = write_to(process, sources, 2, targets, kGuardPages + 2);
  if (copied < static_cast<int64_t>(sizeof words)) process_.store(0, std::memory_order_relaxed);
  return copied == static_cast<int64_t>(sizeof words + size);
}

// One guard page is enough: its nonce proves it.
bool GuardedProcess::read(uint64_t address, std::byte* to, size_t size) {
  const pid_t process = process_.load(std::memory_order_relaxed);
  if (process == 0) return false;
  uint64_t nonce = 0;
  const iovec targets[] = {ours(&nonce, kWord), ours(to, size)};
  const size_t last = size_of_last_word(reinterpret_cast<uintptr_t>(to), size);
  const iovec sources[] = {theirs(guards_.addresses[0], kWord), theirs(address, size - last),
                           theirs(address + size - last, last)};
  const int64_t copied = read_from(process, targets, 2, sources, 3);
  const bool proved = copied >= static_cast<int64_t>(kWord) && nonce == guards_.nonce;
  if (!proved) process_.store(0, std::memory_order_relaxed);
  return proved && copied == static_cast<int64_t>(kWord + size);
}

}  // namespace dapple::soft
