// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "udapl/core/lmr.hpp"
#include "udapl/core/lock.hpp"

namespace dapple::dat {

// The LMRs of an IA by lmr_context: what the sync calls look their segments up in.
//
// Threads: on a thread-safe IA a caller of find() holds the guard while it uses what it found, and with it lmr_free
// off.
class LmrTable {
  using Map = std::unordered_map<uint32_t, Lmr*>;

 public:
  explicit LmrTable(bool thread_safe) : mutex_(thread_safe) {}

  void add(Lmr& lmr) {
    std::lock_guard guard(mutex_);
    by_context_.insert_or_assign(lmr.context(), &lmr);
  }
  // Hides a region from find() until put_back(), which cannot fail.
  [[nodiscard]] Map::node_type take(uint32_t context) {
    std::lock_guard guard(mutex_);
    return by_context_.extract(context);
  }
  void put_back(Map::node_type region) {
    std::lock_guard guard(mutex_);
    by_context_.insert(std::move(region));
  }
  [[nodiscard]] std::unique_lock<OptionalMutex> guard() const { return std::unique_lock(mutex_); }
  const Lmr* find(uint32_t context) const {
    const auto found = by_context_.find(context);
    return found == by_context_.end() ? nullptr : found->second;
  }

 private:
  mutable OptionalMutex mutex_;
  Map by_context_;
};

}  // namespace dapple::dat
