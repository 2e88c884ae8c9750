// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory regions of one context, by lkey.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

namespace dapple::provider {

// A region's memory is at the program's address, not at the device's. A region of device memory, of a dma-buf or
// without memory (ibv_alloc_null_mr) has no address in the program.
struct Region {
  Region() = default;
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  Region* next = nullptr;  // the table's
  const ibv_mr* mr = nullptr;
  uint32_t lkey = 0;
  bool has_address = true;
  int dmabuf_fd = -1;  // owned by the region; -1 unless its memory is a dma-buf
  uintptr_t address = 0;
  size_t length = 0;
  uint64_t iova = 0;
  int access = 0;
  void* policy_state = nullptr;
};

// The segment's place in the process; an empty range if the region has no address there. False if the segment is not
// within the region.
bool translate(const Region& region, const ibv_sge& segment, iovec* range);

// A hash table of regions, which its caller owns. Only growing it allocates; if that fails, the table only becomes
// slower. Confined: the caller locks.
class RegionTable {
 public:
  RegionTable() = default;
  ~RegionTable();
  RegionTable(const RegionTable&) = delete;
  RegionTable& operator=(const RegionTable&) = delete;

  void insert(Region* region);
  // Removes the region of this mr. Null if there is none.
  Region* remove(const ibv_mr* mr, uint32_t lkey);
  // Takes every region out, as a list linked by next.
  Region* remove_all();
  // Null if there is none.
  const Region* find(uint32_t lkey) const;

 private:
  static constexpr size_t kFirstBuckets = 64;

  Region** bucket_of(uint32_t lkey) const;
  void grow();

  Region* first_[kFirstBuckets] = {};
  Region** buckets_ = first_;
  size_t num_buckets_ = kFirstBuckets;  // a power of two
  size_t num_regions_ = 0;
};

}  // namespace dapple::provider
