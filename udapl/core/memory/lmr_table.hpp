// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>
#include <cassert>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "ibverbs-glue/frame_exit.hpp"
#include "udapl/core/lock.hpp"
#include "udapl/core/memory/lmr.hpp"

namespace dapple::udapl {

// The LMRs of an IA by lmr_context, for the sync calls to look up their segments.
//
// Threads: internally locked. A caller of find() holds the guard while it uses the result. Pins and the guard make
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
    assert(!region || (region.mapped().going && region.mapped().pins == 0));
    if (region) region.mapped().going = false;
    by_context_.insert(std::move(region));
  }
  [[nodiscard]] std::unique_lock<SmallMutex> guard() const { return std::unique_lock(mutex_); }
  const Lmr* find(uint32_t context) const {
    const auto found = by_context_.find(context);
    return found == by_context_.end() || found->second.going ? nullptr : found->second.lmr;
  }
  Lmr* find(uint32_t context) { return const_cast<Lmr*>(std::as_const(*this).find(context)); }

  // Pins on up to kMax regions: they stay, without the guard too, as long as this object lives. It lies on the stack
  // of its thread, and a longjmp() that leaves its frame ends the pins, too.
  class Pins {
   public:
    static constexpr size_t kMax = 64;

    explicit Pins(LmrTable& table) : table_(table) {}
    // Finds and pins a region; null if there is none. The caller holds the guard.
    const Lmr* add(uint32_t context) {
      assert(count_ < kMax);
      const auto found = table_.by_context_.find(context);
      if (found == table_.by_context_.end() || found->second.going) return nullptr;
      ++found->second.pins;
      entries_[count_++] = &found->second;
      return found->second.lmr;
    }

   private:
    void end() {
      std::lock_guard guard(table_.mutex_);
      for (size_t i = 0; i < count_; ++i) {
        assert(entries_[i]->pins > 0);
        if (--entries_[i]->pins == 0 && entries_[i]->going) table_.unpinned_.notify_all();
      }
    }

    LmrTable& table_;
    size_t count_ = 0;
    Entry* entries_[kMax];  // a pinned entry keeps its place
    const FrameExit at_exit_{[](void* pins) { static_cast<Pins*>(pins)->end(); }, this};
  };

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
