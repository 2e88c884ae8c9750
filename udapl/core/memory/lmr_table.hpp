// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "udapl/core/lock.hpp"
#include "udapl/core/memory/lmr.hpp"

namespace dapple::udapl {

// The LMRs of an IA by lmr_context, for the sync calls to look up their segments.
//
// Threads: internally locked. A caller of find() holds the guard while it uses the result, or pins it: both make
// lmr_free wait.
class LmrTable {
  struct Entry {
    Lmr* lmr;
    uint32_t pins = 0;
    bool going = false;  // while this is set, only threads that have pinned the region use it
  };
  using Map = std::unordered_map<uint32_t, Entry>;

 public:
  void add(Lmr& lmr) {
    std::lock_guard guard(mutex_);
    by_context_.insert_or_assign(lmr.context(), Entry{&lmr});
  }
  // Hides a region from find() until put_back(), which cannot fail. Blocks until no thread pins the region.
  [[nodiscard]] Map::node_type take(uint32_t context) {
    std::unique_lock guard(mutex_);
    const auto found = by_context_.find(context);
    if (found == by_context_.end()) return {};
    Entry& entry = found->second;
    entry.going = true;
    departures_.fetch_add(1, std::memory_order_relaxed);
    unpinned_.wait(guard, [&entry] { return entry.pins == 0; });
    return by_context_.extract(context);
  }
  void put_back(Map::node_type region) {
    std::lock_guard guard(mutex_);
    if (region) region.mapped().going = false;
    by_context_.insert(std::move(region));
  }
  [[nodiscard]] std::unique_lock<SmallMutex> guard() const { return std::unique_lock(mutex_); }
  const Lmr* find(uint32_t context) const {
    const auto found = by_context_.find(context);
    return found == by_context_.end() || found->second.going ? nullptr : found->second.lmr;
  }
  Lmr* find(uint32_t context) { return const_cast<Lmr*>(std::as_const(*this).find(context)); }

  // Pins a region that find() has returned; the caller holds the guard. The region stays, without the guard too, until
  // unpin() was called as often.
  void pin(uint32_t context) { ++by_context_.find(context)->second.pins; }
  // These take the guard themselves.
  const Lmr& pinned(uint32_t context) const {
    std::lock_guard guard(mutex_);
    return *by_context_.find(context)->second.lmr;
  }
  void unpin(uint32_t context) {
    std::lock_guard guard(mutex_);
    Entry& entry = by_context_.find(context)->second;
    if (--entry.pins == 0 && entry.going) unpinned_.notify_all();
  }

  // Changes whenever a region leaves the table. Until then, a caller may rely on its knowledge of a region. Readable
  // without the guard.
  uint32_t departures() const { return departures_.load(std::memory_order_relaxed); }

 private:
  mutable SmallMutex mutex_;
  std::condition_variable_any unpinned_;
  Map by_context_;
  std::atomic<uint32_t> departures_ = 0;
};

}  // namespace dapple::udapl
