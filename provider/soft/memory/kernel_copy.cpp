// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/kernel_copy.hpp"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cassert>

#include "provider/common/host_guards.hpp"
#include "provider/soft/memory/ordered_copy.hpp"

namespace dapple::soft {
namespace {

iovec part(const std::byte* at, size_t size) {
  return {const_cast<std::byte*>(at), size};
}

// Memory in one piece, or in two whose second one becomes visible last.
struct Parts {
  iovec parts[2];
  bool single;

  const iovec* begin() const { return parts + (single ? 1 : 0); }
  size_t count() const { return single ? 1 : 2; }
};

Parts whole(const std::byte* at, size_t size) {
  return {{{}, part(at, size)}, true};
}

Parts last_word_last(const std::byte* at, size_t size) {
  const size_t last = size_of_last_word(reinterpret_cast<uintptr_t>(at), size);
  return {{part(at, size - last), part(at + size - last, last)}, size == last};
}

// The kernel takes `here` as the buffers of a system call, and looks for the pages of `there`.
// Not the C library's function: a sanitizer would take the call for an access of the program to our memory.
KernelCopy copy(long call, const Parts& here, const Parts& there, size_t size) {
  assert(size > 0);
  // A filter of system calls stays as long as the process.
  static std::atomic<bool> is_forbidden = false;
  if (is_forbidden.load(std::memory_order_relaxed)) return KernelCopy::kForbidden;
  const ErrnoGuard keep;
  const long copied =
      syscall(call, static_cast<long>(getpid()), here.begin(), here.count(), there.begin(), there.count(), 0ul);
  if (copied == static_cast<long>(size)) return KernelCopy::kWhole;
  if (copied >= 0 || errno == EFAULT) return KernelCopy::kMissing;
  if (errno == EPERM || errno == ENOSYS) is_forbidden.store(true, std::memory_order_relaxed);
  return KernelCopy::kForbidden;
}

}  // namespace

KernelCopy copy_in_by_kernel(std::byte* to, const std::byte* from, size_t size) {
  return copy(SYS_process_vm_writev, whole(from, size), last_word_last(to, size), size);
}

KernelCopy copy_in_any_order(std::byte* to, const std::byte* from, size_t size) {
  return copy(SYS_process_vm_writev, whole(from, size), whole(to, size), size);
}

KernelCopy copy_out_by_kernel(const std::byte* from, std::byte* to, size_t size) {
  return copy(SYS_process_vm_readv, whole(to, size), whole(from, size), size);
}

bool DriverBytes::copy_in(std::byte* to, const std::byte* from, size_t size) const {
  const KernelCopy copied = copy(SYS_process_vm_readv, last_word_last(to, size), whole(from, size), size);
  if (copied == KernelCopy::kForbidden) copy_last_word_last(to, from, size);
  return copied != KernelCopy::kMissing;
}

bool DriverBytes::copy_out(const std::byte* from, std::byte* to, size_t size) const {
  const KernelCopy copied = copy(SYS_process_vm_writev, whole(from, size), whole(to, size), size);
  if (copied == KernelCopy::kForbidden) memcpy(to, from, size);
  return copied != KernelCopy::kMissing;
}

}  // namespace dapple::soft
