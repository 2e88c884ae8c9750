// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "udapl/core/lmr.hpp"
#include "udapl/core/lock.hpp"

namespace dapple::dat {

// The LMRs of an IA by lmr_context: what the sync calls look their segments up in.
//
// Threads: internally locked, whatever the IA. A caller of find() holds the guard while it uses what it found, and with
// it lmr_free off.
class LmrTable {
  using Map = std::unordered_map<uint32_t, Lmr*>;

 public:
  void add(Lmr& lmr) {
    std::lock_guard guard(mutex_);
    by_context_.insert_or_assign(lmr.context(), &lmr);
    zero_based_ += lmr.zero_based();
  }
  // Hides a region from find() until put_back(), which cannot fail.
  [[nodiscard]] Map::node_type take(uint32_t context) {
    std::lock_guard guard(mutex_);
    auto region = by_context_.extract(context);
    if (region) zero_based_ -= region.mapped()->zero_based();
    return region;
  }
  void put_back(Map::node_type region) {
    std::lock_guard guard(mutex_);
    if (region) zero_based_ += region.mapped()->zero_based();
    by_context_.insert(std::move(region));
  }
  [[nodiscard]] std::unique_lock<SmallMutex> guard() const { return std::unique_lock(mutex_); }
  const Lmr* find(uint32_t context) const {
    const auto found = by_context_.find(context);
    return found == by_context_.end() ? nullptr : found->second;
  }
  Lmr* find(uint32_t context) { return const_cast<Lmr*>(std::as_const(*this).find(context)); }
  // Whether a segment's address may be no address of the CPU's. Readable without the guard.
  bool any_zero_based() const { return zero_based_.load(std::memory_order_relaxed) != 0; }

 private:
  mutable SmallMutex mutex_;
  Map by_context_;
  std::atomic<uint32_t> zero_based_ = 0;
};

}  // namespace dapple::dat
