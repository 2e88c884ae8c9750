// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/gid_uses.hpp"

#include <cassert>

namespace dapple::soft {

GidHold::~GidHold() {
  if (uses_ != nullptr && !uses_->is_of_parent()) uses_->release(row_);
}

GidHold GidUses::hold(uint32_t device, uint32_t gid_index) {
  const uint64_t key = gid_entry_key(device, gid_index);
  const std::lock_guard lock(mutex_);
  const uint32_t end = end_of_rows(shared_);
  uint32_t free_row = end;
  for (uint32_t i = 0; i < end; i++) {
    GidUseRow& row = shared_.rows[i];
    const uint32_t uses = row.uses.load(std::memory_order_relaxed);
    if (uses != 0 && row.entry.load(std::memory_order_relaxed) == key) {
      row.uses.store(uses + 1, std::memory_order_seq_cst);
      return {*this, i};
    }
    if (uses == 0 && free_row == end) free_row = i;
  }
  if (free_row == kMaxGidUseRows) return {};
  GidUseRow& row = shared_.rows[free_row];
  assert(row.uses.load(std::memory_order_relaxed) == 0);
  row.entry.store(key, std::memory_order_relaxed);
  row.uses.store(1, std::memory_order_seq_cst);
  if (free_row == end) shared_.end.store(end + 1, std::memory_order_seq_cst);
  return {*this, free_row};
}

void GidUses::release(uint32_t row) {
  const std::lock_guard lock(mutex_);
  assert(row < kMaxGidUseRows);
  std::atomic<uint32_t>& uses = shared_.rows[row].uses;
  const uint32_t before = uses.load(std::memory_order_relaxed);
  assert(before != 0);
  uses.store(before - 1, std::memory_order_release);
}

}  // namespace dapple::soft
