// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/overlay/region_table.hpp"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

namespace dapple::provider {

Region::~Region() {
  if (dmabuf_fd >= 0) close(dmabuf_fd);
}

bool translate(const Region& region, const ibv_sge& segment, iovec* range) {
  if (segment.addr < region.iova) return false;
  const uint64_t offset = segment.addr - region.iova;
  if (offset > region.length || segment.length > region.length - offset) return false;
  if (!region.has_address) {
    *range = {};
    return true;
  }
  // region.address is a number and not a pointer, because a region may begin at address 0 (implicit on-demand paging).
  *range = {reinterpret_cast<void*>(region.address + offset), segment.length};
  return true;
}

RegionTable::~RegionTable() {
  if (buckets_ != first_) free(buckets_);
}

Region** RegionTable::bucket_of(uint32_t lkey) const {
  // Devices count their keys up in the upper bits, so the hash uses all bits.
  const uint32_t mixed = lkey * 0x9e3779b1u;
  return &buckets_[(mixed >> 8) & (num_buckets_ - 1)];
}

void RegionTable::insert(Region* region) {
  assert(region->mr != nullptr);
  if (num_regions_ >= 2 * num_buckets_) grow();
  Region** bucket = bucket_of(region->lkey);
  region->next = *bucket;
  *bucket = region;
  ++num_regions_;
}

Region* RegionTable::remove(const ibv_mr* mr, uint32_t lkey) {
  for (Region** link = bucket_of(lkey); *link != nullptr; link = &(*link)->next) {
    Region* region = *link;
    if (region->mr != mr) continue;
    *link = region->next;
    region->next = nullptr;
    assert(num_regions_ > 0);
    --num_regions_;
    return region;
  }
  return nullptr;
}

Region* RegionTable::remove_all() {
  Region* all = nullptr;
  for (size_t i = 0; i < num_buckets_; ++i) {
    while (buckets_[i] != nullptr) {
      Region* region = buckets_[i];
      buckets_[i] = region->next;
      region->next = all;
      all = region;
      assert(num_regions_ > 0);
      --num_regions_;
    }
  }
  assert(num_regions_ == 0);
  return all;
}

const Region* RegionTable::find(uint32_t lkey) const {
  const Region* region = *bucket_of(lkey);
  while (region != nullptr && region->lkey != lkey) region = region->next;
  return region;
}

void RegionTable::grow() {
  assert((num_buckets_ & (num_buckets_ - 1)) == 0);
  const size_t old_num_buckets = num_buckets_;
  Region** old_buckets = buckets_;
  auto** buckets = static_cast<Region**>(calloc(4 * old_num_buckets, sizeof(void*)));
  if (buckets == nullptr) return;
  buckets_ = buckets;
  num_buckets_ = 4 * old_num_buckets;
  for (size_t i = 0; i < old_num_buckets; ++i) {
    while (old_buckets[i] != nullptr) {
      Region* region = old_buckets[i];
      old_buckets[i] = region->next;
      Region** bucket = bucket_of(region->lkey);
      region->next = *bucket;
      *bucket = region;
    }
  }
  if (old_buckets != first_) free(old_buckets);
}

}  // namespace dapple::provider
