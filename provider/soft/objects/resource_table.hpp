// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// This process' list of its verbs objects. It decides nothing; `rdma resource` shows it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "provider/member/counters_file.hpp"
#include "provider/protocol/resource_rows.hpp"

namespace dapple::soft {

class ResourceTable;

// An object's row; ends with its owner. Movable. In a child of fork() it does nothing, as the row is the parent's.
class ShownObject {
 public:
  ShownObject() = default;
  ShownObject(ShownObject&& other) noexcept { swap(other); }
  ShownObject& operator=(ShownObject&& other) noexcept {
    ShownObject moved(std::move(other));
    swap(moved);
    return *this;
  }
  ShownObject(const ShownObject&) = delete;
  ShownObject& operator=(const ShownObject&) = delete;
  ~ShownObject();

  // Its number for the rows of other objects; 0: it has no row.
  uint32_t row_number() const { return row_number_; }
  // Replaces the row. One thread at a time.
  void show(const ResourceRow& row);
  // The queue pair goes into this state by itself, unless it is in error. Under its lock.
  void show_failure(uint32_t state);
  // More pages of an on-demand region. Any thread.
  void add_pages(uint32_t faults, uint32_t invalidations, uint32_t prefetches);

 private:
  friend class ResourceTable;
  ShownObject(ResourceTable& table, uint32_t row_number, uint32_t tag)
      : table_(&table), row_number_(row_number), tag_(tag) {}
  void swap(ShownObject& other) {
    std::swap(table_, other.table_);
    std::swap(row_number_, other.row_number_);
    std::swap(tag_, other.tag_);
  }

  ResourceTable* table_ = nullptr;
  uint32_t row_number_ = 0;
  uint32_t tag_ = 0;
};

// Any thread, without a lock. It lives as long as the process.
class ResourceTable {
 public:
  // Removes the rows that the slot's last owner has left. `forks` grows in each child of fork(), and lives as long as
  // the process. So does `memory`, which is for these rows.
  ResourceTable(SlotResources& shared, ResourceRowMemory& memory, const std::atomic<uint32_t>& forks);

  // Without a row if all rows are taken, or if there is no memory for more.
  ShownObject add(const ResourceRow& row);
  // The program closes this context, and leaves objects. The context's own row stays.
  void remove_all(uint32_t context);
  // The counts of a device, for their only writer. Null if more devices are counted than there can be.
  ResourceCounts* counts_of(uint32_t device);

 private:
  friend class ShownObject;
  static constexpr uint32_t kWords = (kMaxResourceRows + 63) / 64;

  bool is_of_parent() const { return forks_.load(std::memory_order_relaxed) != made_after_; }
  void remove(uint32_t row_number, uint32_t tag);
  bool is_current(uint32_t row_number, uint32_t tag) const;

  SlotResources& shared_;
  ResourceRowMemory& memory_;
  const std::atomic<uint32_t>& forks_;
  const uint32_t made_after_;
  std::array<std::atomic<uint64_t>, kWords> taken_ = {};  // a bit for each row
  // Even: the row is free, or about to be. The row's owner knows its tag.
  std::array<std::atomic<uint32_t>, kMaxResourceRows> tags_ = {};
};

}  // namespace dapple::soft
