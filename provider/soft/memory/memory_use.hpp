// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For memory_access.cpp alone: what holds an entry of the table during an access.
#pragma once

#include <cassert>

#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/locks/users_in_progress.hpp"
#include "provider/soft/memory/memory_table.hpp"

namespace dapple::soft {

// Inlined everywhere, because most accesses are shorter than calls.
class MemoryTable::Use {
 public:
  [[gnu::always_inline]] Use(const MemoryTable& table, uint32_t key) {
    Entry* entry = table.entry_at(key);
    // Checked before it is held: a revoker waits only for earlier accesses.
    if (entry == nullptr || key == 0 || entry->valid_key.load(std::memory_order_acquire) != key) return;
    entry_ = entry;
    hazard_ = entry->kind == Kind::kRegion ? UsersInProgress::free_hazard() : nullptr;
    if (hazard_ != nullptr) [[likely]] {
      assert(hazard_->load(std::memory_order_relaxed) == nullptr);
      hazard_->store(entry, std::memory_order_relaxed);
      light_barrier();
    } else {
      entry->users.fetch_add(1, std::memory_order_seq_cst);
    }
    if (entry->valid_key.load(std::memory_order_seq_cst) != key) let_go();
  }
  ~Use() {
    if (entry_ != nullptr) let_go();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  explicit operator bool() const { return entry_ != nullptr; }
  const Entry& operator*() const { return *entry_; }

 private:
  void let_go() {
    if (hazard_ != nullptr) {
      hazard_->store(nullptr, std::memory_order_release);
    } else {
      [[maybe_unused]] const uint32_t before = entry_->users.fetch_sub(1, std::memory_order_release);
      assert(before > 0);
    }
    entry_ = nullptr;
  }

  Entry* entry_ = nullptr;
  UsersInProgress::Hazard* hazard_ = nullptr;
};

}  // namespace dapple::soft
