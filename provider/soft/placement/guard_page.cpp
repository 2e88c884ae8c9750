// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/guard_page.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "provider/soft/unseen_access.hpp"

namespace dapple::soft {
namespace {

// 16 TiB that programs leave alone: the kernel puts nothing there by itself, and no sanitizer has its shadow there. The
// chance that the next program in the same process, or another process with its number, has a guard page at the same
// address is one in 2^32 with pages of 4 KiB.
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

GuardPage::~GuardPage() {
  if (guard_.address != 0) unmap_at(guard_.address);
}

bool GuardPage::map() {
#ifdef DAPPLE_HAS_TSAN
  return false;
#endif
  uint64_t random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random) return false;
  const uint64_t address = kFirstAddress + (random[0] & kAddressMask & ~(page_size() - 1));
  if (!map_at(address)) return false;
  guard_ = {address, random[1]};
  *reinterpret_cast<uint64_t*>(address) = guard_.nonce;  // NOLINT(performance-no-int-to-ptr)
  return true;
}

}  // namespace dapple::soft
