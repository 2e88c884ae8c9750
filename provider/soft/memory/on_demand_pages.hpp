// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The pages of an on-demand region that the device has used, to count what a NIC counts. A NIC takes a page fault when
// it first uses a page, and again after the kernel has taken the page away. No notifier tells this device of the
// latter. So it learns that a page has gone by an access that fails, and only then counts its next use again.
//
// Any thread, without a lock.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace dapple::soft {

// Pages, as mlx5 counts them for `rdma statistic show mr`.
struct PagingCounts {
  uint32_t faults = 0;
  uint32_t invalidations = 0;
  uint32_t prefetched = 0;
};

class PagingWatch {
 public:
  // These are to be added.
  virtual void count(const PagingCounts& more) = 0;

 protected:
  ~PagingWatch() = default;
};

class OnDemandPages {
 public:
  // Null if there is no memory.
  static std::unique_ptr<OnDemandPages> make(const std::byte* memory, uint64_t length);

  // Gets the counts from now on, and lives as long as this.
  void watched_by(PagingWatch& watch) { watch_.store(&watch, std::memory_order_release); }

  // Bytes of the region, at least one, whose pages are there.
  void used(const std::byte* address, uint64_t length);
  void prefetched(const std::byte* address, uint64_t length);
  // The same, if a page is missing or lacks the right.
  void missing(const std::byte* address, uint64_t length);

 private:
  // Of a larger region, pages that are this far from each other count as one.
  static constexpr uint64_t kMaxPages = uint64_t{1} << 23;

  struct Free {
    void operator()(void* memory) const { free(memory); }
  };
  struct Range {
    uint64_t first;
    uint64_t count;
  };

  OnDemandPages(uint64_t first, uint64_t pages, uint64_t* bits) : first_(first), pages_(pages), bits_(bits) {}

  Range pages_of(const std::byte* address, uint64_t length) const;
  // Marks the pages, or clears their marks. Returns the number of those that were not so before.
  uint64_t mark(const Range& range, bool used);
  void tell(const PagingCounts& more) const;

  const uint64_t first_;  // the number of its first page in the address space
  const uint64_t pages_;
  const std::unique_ptr<uint64_t[], Free> bits_;  // the pages that the device has used
  std::atomic<PagingWatch*> watch_{nullptr};
};

}  // namespace dapple::soft
