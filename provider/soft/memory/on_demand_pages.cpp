// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/on_demand_pages.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>

namespace dapple::soft {
namespace {

constexpr uint64_t kWordBits = 64;

// The number of the page that has this byte. The whole address space may be a region.
uint64_t page_of(const std::byte* memory, uint64_t offset = 0) {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (reinterpret_cast<uintptr_t>(memory) + offset) / size;
}

}  // namespace

std::unique_ptr<OnDemandPages> OnDemandPages::make(const std::byte* memory, uint64_t length) {
  const uint64_t first = page_of(memory);
  const uint64_t last = length == 0 ? first : page_of(memory, length - 1);
  const uint64_t pages = std::min(last - first + 1, kMaxPages);
  auto* bits = static_cast<uint64_t*>(calloc((pages + kWordBits - 1) / kWordBits, sizeof(uint64_t)));
  if (bits == nullptr) return nullptr;
  std::unique_ptr<OnDemandPages> made(new (std::nothrow) OnDemandPages(first, pages, bits));
  if (made == nullptr) free(bits);
  return made;
}

OnDemandPages::Range OnDemandPages::pages_of(const std::byte* address, uint64_t length) const {
  assert(length > 0 && page_of(address) >= first_);
  const uint64_t first = page_of(address);
  return {first - first_, std::min(page_of(address, length - 1) - first + 1, pages_)};
}

uint64_t OnDemandPages::mark(const Range& range, bool used) {
  uint64_t changed = 0;
  uint64_t page = range.first % pages_;
  for (uint64_t left = range.count; left > 0;) {
    const uint64_t bit = page % kWordBits;
    const uint64_t count = std::min({left, kWordBits - bit, pages_ - page});
    const uint64_t mask = (count == kWordBits ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << bit;
    const std::atomic_ref<uint64_t> word(bits_[page / kWordBits]);
    // Most accesses change nothing.
    const uint64_t present = word.load(std::memory_order_relaxed);
    if (((used ? ~present : present) & mask) != 0) {
      const uint64_t before =
          used ? word.fetch_or(mask, std::memory_order_relaxed) : word.fetch_and(~mask, std::memory_order_relaxed);
      changed += static_cast<uint64_t>(std::popcount((used ? ~before : before) & mask));
    }
    left -= count;
    page = (page + count) % pages_;
  }
  return changed;
}

void OnDemandPages::tell(const PagingCounts& more) const {
  if (PagingWatch* watch = watch_.load(std::memory_order_acquire); watch != nullptr) watch->count(more);
}

void OnDemandPages::used(const std::byte* address, uint64_t length) {
  if (const uint64_t faults = mark(pages_of(address, length), true); faults != 0)
    tell({.faults = static_cast<uint32_t>(faults)});
}

void OnDemandPages::prefetched(const std::byte* address, uint64_t length) {
  const Range range = pages_of(address, length);
  mark(range, true);
  tell({.prefetched = static_cast<uint32_t>(range.count)});
}

void OnDemandPages::missing(const std::byte* address, uint64_t length) {
  if (const uint64_t gone = mark(pages_of(address, length), false); gone != 0)
    tell({.invalidations = static_cast<uint32_t>(gone)});
}

}  // namespace dapple::soft
