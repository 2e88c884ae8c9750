// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/on_demand_bytes.hpp"

#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "provider/soft/memory/kernel_copy.hpp"
#include "provider/soft/memory/mapped_range.hpp"
#include "provider/soft/memory/ordered_copy.hpp"

namespace dapple::soft {
namespace {

// Each look at a page is a system call.
constexpr int kMaxLooks = 1024;

// The pages of the range that are not there, or lack the right: those of its first kMaxLooks pages.
[[gnu::cold]] void count_missing(OnDemandPages& pages, const std::byte* memory, size_t size, bool write) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (int looks = 0; size > 0 && looks < kMaxLooks; looks++) {
    const size_t part = std::min(size, page - reinterpret_cast<uintptr_t>(memory) % page);
    if (populate_range(memory, part, write) != 0) pages.missing(memory, part);
    memory += part;
    size -= part;
  }
}

}  // namespace

bool OnDemandBytes::noted(bool is_there, const std::byte* memory, size_t size, bool write) const {
  if (pages_ == nullptr || size == 0) return is_there;
  if (is_there) {
    pages_->used(memory, size);
  } else {
    count_missing(*pages_, memory, size, write);
  }
  return is_there;
}

bool OnDemandBytes::bring_in(const std::byte* memory, size_t size, bool write) const {
  return noted(populate_range(memory, size, write) == 0, memory, size, write);
}

bool OnDemandBytes::copy_out(const std::byte* from, std::byte* to, size_t size) const {
  const KernelCopy copy = copy_out_by_kernel(from, to, size);
  if (copy != KernelCopy::kForbidden) return noted(copy == KernelCopy::kWhole, from, size, false);
  if (!bring_in(from, size, false)) return false;
  memcpy(to, from, size);
  return true;
}

bool OnDemandBytes::copy_in(std::byte* to, const std::byte* from, size_t size) const {
  const KernelCopy copy = copy_in_by_kernel(to, from, size);
  if (copy != KernelCopy::kForbidden) return noted(copy == KernelCopy::kWhole, to, size, true);
  if (!bring_in(to, size, true)) return false;
  copy_last_word_last(to, from, size);
  return true;
}

}  // namespace dapple::soft
