// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/mapped_range.hpp"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace dapple::soft {
namespace {

constexpr size_t kPagesAtOnce = 4096;

bool all_mapped(uintptr_t begin, uintptr_t end, size_t page_size) {
  unsigned char resident[kPagesAtOnce];
  while (begin < end) {
    size_t pages = (end - begin) / page_size;
    if (pages > kPagesAtOnce) pages = kPagesAtOnce;
    if (mincore(reinterpret_cast<void*>(begin), pages * page_size, resident) != 0 && errno == ENOMEM) return false;
    begin += pages * page_size;
  }
  return true;
}

// 0, EINVAL or EFAULT. The kernel answers EINVAL for a page without the right and for special mappings (device memory),
// which a kernel's device refuses, too; and, before 5.14, for everything: then the rights stay unknown.
int populate(uintptr_t begin, size_t size, bool write) {
  if (madvise(reinterpret_cast<void*>(begin), size, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0) return 0;
  if (errno == EINVAL) return EINVAL;
  return errno == EFAULT || errno == ENOMEM ? EFAULT : 0;
}
bool populates(uintptr_t page, size_t page_size, bool write) {
  return populate(page, page_size, write) == 0;
}

bool can_populate(size_t page_size) {
  const char here = 0;
  return populates(reinterpret_cast<uintptr_t>(&here) / page_size * page_size, page_size, false);
}

size_t size_of_page() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

int probe_mapped_range(const void* address, size_t length, bool write) {
  if (length == 0) return 0;
  const size_t page_size = size_of_page();
  const uintptr_t address_number = reinterpret_cast<uintptr_t>(address);
  // As in the kernel: no memory has this length at any address.
  if (address_number + length < address_number || address_number + length > UINTPTR_MAX - page_size) return EINVAL;
  if (length / page_size > UINT32_MAX) return EINVAL;
  const uintptr_t begin = address_number / page_size * page_size;
  const uintptr_t end = (address_number + length + page_size - 1) / page_size * page_size;
  const int saved_errno = errno;
  bool there = all_mapped(begin, end, page_size);
  if (there && can_populate(page_size)) {
    there = populates(begin, page_size, write) &&
            (end - begin == page_size || populates(end - page_size, page_size, write));
  }
  errno = saved_errno;
  return there ? 0 : EFAULT;
}

int populate_range(const void* address, size_t length, bool write) {
  if (length == 0) return 0;
  const int saved_errno = errno;
  const size_t page_size = size_of_page();
  static std::atomic<int> answer{-1};  // of can_populate(); below 0: not asked yet
  if (answer.load(std::memory_order_relaxed) < 0) answer.store(can_populate(page_size), std::memory_order_relaxed);
  const bool populates_here = answer.load(std::memory_order_relaxed) != 0;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address) / page_size * page_size;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(address) + length - 1) / page_size * page_size;
  if (begin > last || last + page_size < last) return EFAULT;
  int error = 0;
  if (populates_here) {
    error = populate(begin, last - begin + page_size, write);
  } else if (!all_mapped(begin, last + page_size, page_size)) {
    error = EFAULT;
  }
  errno = saved_errno;
  return error;
}

}  // namespace dapple::soft
