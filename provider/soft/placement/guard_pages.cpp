// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/guard_pages.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "provider/soft/unseen_access.hpp"

namespace dapple::soft {
namespace {

// 16 TiB that programs leave alone: the kernel puts nothing there by itself, and no sanitizer has its shadow there. The
// chance that another process with guard pages has all of them at the same places is one in 2^63.
constexpr uint64_t kFirstAddress = uint64_t{1} << 46;
constexpr uint64_t kAddressMask = (uint64_t{1} << 44) - 1;

size_t page_size() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Not the C library's functions: ThreadSanitizer replaces them, and has no place for these addresses.
void unmap_at(uint64_t address) {
  syscall(SYS_munmap, address, page_size());
}

// False if the page is in use, or the machine has no such address.
bool map_at(uint64_t address) {
  const int64_t mapped = syscall(SYS_mmap, address, page_size(), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapped == -1) return false;
  // Kernels before 4.17 take the address as a hint. A child is another process, which no peer must reach by a number
  // that it may get later.
  const auto got = static_cast<uint64_t>(mapped);
  if (got == address && syscall(SYS_madvise, got, page_size(), MADV_DONTFORK) == 0) return true;
  unmap_at(got);
  return false;
}

}  // namespace

GuardPages::~GuardPages() {
  unmap();
}

bool GuardPages::map() {
#ifdef DAPPLE_HAS_TSAN
  return false;
#endif
  uint64_t random[kGuardPages + 1];
  if (getrandom(random, sizeof random, 0) != sizeof random) return false;
  guards_.nonce = random[kGuardPages];
  for (size_t i = 0; i < kGuardPages; i++) {
    const uint64_t address = kFirstAddress + (random[i] & kAddressMask & ~(page_size() - 1));
    if (!map_at(address)) {
      unmap();
      return false;
    }
    *reinterpret_cast<uint64_t*>(address) = guards_.nonce;  // NOLINT(performance-no-int-to-ptr)
    guards_.addresses[i] = address;
  }
  return true;
}

void GuardPages::unmap() {
  for (const uint64_t address : guards_.addresses) {
    if (address != 0) unmap_at(address);
  }
  guards_ = {};
}

}  // namespace dapple::soft
