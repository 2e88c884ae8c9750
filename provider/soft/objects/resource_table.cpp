// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/resource_table.hpp"

#include <bit>
#include <cassert>

namespace dapple::soft {

ShownObject::~ShownObject() {
  if (table_ != nullptr && !table_->is_of_parent()) table_->remove(row_number_, tag_);
}

void ShownObject::show(const ResourceRow& row) {
  if (table_ == nullptr || table_->is_of_parent() || !table_->is_current(row_number_, tag_)) return;
  table_->shared_.rows[row_number_ - 1].write(row);
}

void ShownObject::show_failure(uint32_t state) {
  if (table_ == nullptr || table_->is_of_parent() || !table_->is_current(row_number_, tag_)) return;
  SharedResourceRow& row = table_->shared_.rows[row_number_ - 1];
  if (row.state() != kErrorState) row.set_state(state);
}

void ShownObject::add_pages(uint32_t faults, uint32_t invalidations, uint32_t prefetches) {
  if (table_ == nullptr || table_->is_of_parent() || !table_->is_current(row_number_, tag_)) return;
  table_->shared_.rows[row_number_ - 1].add_pages(faults, invalidations, prefetches);
}

ResourceTable::ResourceTable(SlotResources& shared, ResourceRowMemory& memory, const std::atomic<uint32_t>& forks)
    : shared_(shared), memory_(memory), forks_(forks), made_after_(forks.load(std::memory_order_relaxed)) {
  clear(shared);
}

ShownObject ResourceTable::add(const ResourceRow& row) {
  assert(row.kind != ResourceKind::kNone);
  for (uint32_t word = 0; word < kWords; word++) {
    uint64_t taken = taken_[word].load(std::memory_order_relaxed);
    while (taken != UINT64_MAX) {
      const auto bit = static_cast<uint32_t>(std::countr_one(taken));
      const uint32_t index = 64 * word + bit;
      if (index >= kMaxResourceRows || !memory_.has(index)) return {};
      if (!taken_[word].compare_exchange_weak(taken, taken | uint64_t{1} << bit, std::memory_order_acquire)) continue;
      const uint32_t tag = tags_[index].fetch_add(1, std::memory_order_relaxed) + 1;
      assert(tag % 2 == 1);
      shared_.rows[index].write(row);
      // Several threads raise it.
      uint32_t end = shared_.end.load(std::memory_order_relaxed);
      while (end <= index && !shared_.end.compare_exchange_weak(end, index + 1, std::memory_order_release)) continue;
      return {*this, index + 1, tag};
    }
  }
  return {};
}

bool ResourceTable::is_current(uint32_t row_number, uint32_t tag) const {
  assert(row_number > 0 && row_number <= kMaxResourceRows);
  return tags_[row_number - 1].load(std::memory_order_relaxed) == tag;
}

void ResourceTable::remove(uint32_t row_number, uint32_t tag) {
  assert(row_number > 0 && row_number <= kMaxResourceRows && tag % 2 == 1);
  const uint32_t index = row_number - 1;
  // remove_all() may have done it.
  if (!tags_[index].compare_exchange_strong(tag, tag + 1, std::memory_order_relaxed)) return;
  shared_.rows[index].write({});
  [[maybe_unused]] const uint64_t before =
      taken_[index / 64].fetch_and(~(uint64_t{1} << index % 64), std::memory_order_release);
  assert((before & uint64_t{1} << index % 64) != 0);
}

void ResourceTable::remove_all(uint32_t context) {
  if (context == 0) return;
  for (uint32_t index = 0; index < end_of_rows(shared_); index++) {
    const uint32_t tag = tags_[index].load(std::memory_order_relaxed);
    ResourceRow row;
    if (tag % 2 == 0 || !shared_.rows[index].read(row) || row.context != context) continue;
    if (row.kind != ResourceKind::kContext) remove(index + 1, tag);
  }
}

ResourceCounts* ResourceTable::counts_of(uint32_t device) {
  ResourceCounts* free = nullptr;
  for (ResourceCounts& counts : shared_.counts) {
    const uint32_t present = counts.device.load(std::memory_order_relaxed);
    if (present == device) return &counts;
    if (present == 0 && free == nullptr) free = &counts;
  }
  if (free != nullptr) free->device.store(device, std::memory_order_relaxed);
  return free;
}

}  // namespace dapple::soft
