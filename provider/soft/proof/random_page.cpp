// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/proof/random_page.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "provider/soft/memory/tsan_ignore.hpp"

namespace dapple::soft {
namespace {

// 16 TiB that programs leave alone: the kernel puts nothing there by itself, and no sanitizer has its shadow there.
constexpr uint64_t kFirstAddress = uint64_t{1} << 46;
constexpr uint64_t kAddressMask = (uint64_t{1} << 44) - 1;

size_t page_size() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// Not the C library's functions: ThreadSanitizer replaces them, and has no place for these addresses.
void unmap_at(uint64_t address) {
  syscall(SYS_munmap, address, page_size());
}

// Returns the page's address, or 0. A child is another process, which no peer must reach by a number that it may get
// later.
uint64_t map_page(uint64_t hint, int flags) {
  const int64_t mapped =
      syscall(SYS_mmap, hint, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (mapped == -1) return 0;
  const auto got = static_cast<uint64_t>(mapped);
  if (syscall(SYS_madvise, got, page_size(), MADV_DONTFORK) == 0) return got;
  unmap_at(got);
  return 0;
}

}  // namespace

RandomPage::~RandomPage() {
  if (address_ != 0) unmap_at(address_);
}

bool RandomPage::map() {
#ifdef DAPPLE_HAS_TSAN
  return false;
#endif
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return false;
  const uint64_t wanted = kFirstAddress + (random & kAddressMask & ~(page_size() - 1));
  const uint64_t got = map_page(wanted, MAP_FIXED_NOREPLACE);
  // Kernels before 4.17 take the address as a hint.
  if (got != 0 && got != wanted) unmap_at(got);
  if (got != wanted) return false;
  address_ = got;
  return true;
}

bool RandomPage::map_anywhere() {
  address_ = map_page(0, 0);
  return address_ != 0;
}

bool RandomPage::may_have(uint64_t address) {
  return address - kFirstAddress <= kAddressMask;
}

}  // namespace dapple::soft
