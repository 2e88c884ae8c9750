// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The entries of GID tables that a process' queue pairs and address handles use, in memory that it shares with dappled.
// dappled gives such an entry to no other address. dappled reads the rows at any time, without stopping anybody, and
// trusts none of them: a false row keeps an entry from use, and does nothing else.
//
// A process first enters its use, and then looks at `removals`. dappled first removes an address and counts the
// removal, and then looks for uses before it gives the entry to another address. So at least one of them sees the
// other.
#pragma once

#include <atomic>
#include <cstdint>

namespace dapple::soft {

// Far more than a process has addresses in use.
inline constexpr uint32_t kMaxGidUseRows = 250;

struct GidUseRow {
  std::atomic<uint64_t> entry;  // gid_entry_key(); meaningful while uses is not 0
  std::atomic<uint32_t> uses;
  uint32_t reserved;
};

struct SlotGidUses {
  std::atomic<uint32_t> removals;  // dappled counts
  // All rows from here on are free and were never used.
  std::atomic<uint32_t> end;
  GidUseRow rows[kMaxGidUseRows];
};
static_assert(sizeof(SlotGidUses) <= 4096);

// `device` is DeviceInfo::index.
inline uint64_t gid_entry_key(uint32_t device, uint32_t gid_index) {
  return uint64_t{device} << 32 | gid_index;
}

inline uint32_t end_of_rows(const SlotGidUses& uses) {
  const uint32_t end = uses.end.load(std::memory_order_seq_cst);
  return end < kMaxGidUseRows ? end : kMaxGidUseRows;
}

// For dappled.
inline bool uses_gid_entry(const SlotGidUses& uses, uint32_t device, uint32_t gid_index) {
  const uint64_t key = gid_entry_key(device, gid_index);
  const uint32_t end = end_of_rows(uses);
  for (uint32_t i = 0; i < end; i++) {
    const GidUseRow& row = uses.rows[i];
    if (row.uses.load(std::memory_order_seq_cst) != 0 && row.entry.load(std::memory_order_relaxed) == key) return true;
  }
  return false;
}

// For dappled, when the rows have no owner.
inline void clear(SlotGidUses& uses) {
  for (uint32_t i = 0; i < end_of_rows(uses); i++) uses.rows[i].uses.store(0, std::memory_order_relaxed);
  uses.end.store(0, std::memory_order_relaxed);
}

}  // namespace dapple::soft
