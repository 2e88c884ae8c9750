// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The entries of GID tables that this process' queue pairs and address handles use. An entry in use is given to no
// other address: if its own address goes, the entry becomes invisible, and it stays taken until its last user lets go.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "provider/common/mutex.hpp"
#include "provider/protocol/gid_use_rows.hpp"

namespace dapple::soft {

class GidUses;

// One use of an entry; ends with its owner. Movable. In a child of fork() it does nothing, as the use is the parent's.
class GidHold {
 public:
  GidHold() = default;
  GidHold(GidHold&& other) noexcept { swap(other); }
  GidHold& operator=(GidHold&& other) noexcept {
    GidHold moved(std::move(other));
    swap(moved);
    return *this;
  }
  GidHold(const GidHold&) = delete;
  GidHold& operator=(const GidHold&) = delete;
  ~GidHold();

  explicit operator bool() const { return uses_ != nullptr; }

 private:
  friend class GidUses;
  GidHold(GidUses& uses, uint32_t row) : uses_(&uses), row_(row) {}
  void swap(GidHold& other) {
    std::swap(uses_, other.uses_);
    std::swap(row_, other.row_);
  }

  GidUses* uses_ = nullptr;
  uint32_t row_ = 0;
};

// Internally locked. It lives as long as the process.
class GidUses {
 public:
  // `forks` grows in each child of fork(), and lives as long as the process.
  GidUses(SlotGidUses& shared, const std::atomic<uint32_t>& forks)
      : shared_(shared), forks_(forks), made_after_(forks.load(std::memory_order_relaxed)) {}

  // Empty if more entries are in use than there are rows.
  GidHold hold(uint32_t device, uint32_t gid_index);
  // Changes when addresses go.
  uint32_t removals() const { return shared_.removals.load(std::memory_order_seq_cst); }

 private:
  friend class GidHold;
  void release(uint32_t row);
  bool is_of_parent() const { return forks_.load(std::memory_order_relaxed) != made_after_; }

  SlotGidUses& shared_;
  const std::atomic<uint32_t>& forks_;
  const uint32_t made_after_;
  Mutex mutex_{LockRank::kGidUses};
};

}  // namespace dapple::soft
