// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The address handles to which a datagram endpoint may send. The table lets a send refuse a stale handle before
// anything dereferences it.
//
// Threads: any thread may call contains() without a lock, beside one writer.
#pragma once

#include "ibverbs-glue/verbs.hpp"

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dapple::udapl {

class AddressTable {
 public:
  bool contains(const ibv_ah* address) const {
    const Slots* slots = current_.load(std::memory_order_acquire);
    return slots && find(*slots, address);
  }

  // The address must not be in the table. Throws std::bad_alloc with nothing changed.
  void add(ibv_ah* address) {
    assert(address && !contains(address));
    const Slots* slots = current_.load(std::memory_order_relaxed);
    // At most half of the slots hold an address, so put() always finds room. Removals may have left no empty slot, so
    // find() limits its search.
    if (!slots || (count_ + 1) * 2 > slots->size) slots = grow(slots);
    put(*slots, address);
    ++count_;
    assert(count_ * 2 <= slots->size);
  }

  bool remove(const ibv_ah* address) {
    const Slots* slots = current_.load(std::memory_order_relaxed);
    std::atomic<ibv_ah*>* slot = slots ? find(*slots, address) : nullptr;
    if (!slot) return false;
    slot->store(removed(), std::memory_order_release);
    assert(count_ > 0);
    --count_;
    return true;
  }

  // Calls take(address) for each address and forgets them all.
  template <class Take>
  void clear(Take take) {
    const Slots* slots = current_.load(std::memory_order_relaxed);
    for (size_t i = 0; slots && i < slots->size; ++i) {
      ibv_ah* address = slots->at[i].load(std::memory_order_relaxed);
      if (address && address != removed()) {
        assert(count_ > 0);
        --count_;
        take(address);
      }
      slots->at[i].store(nullptr, std::memory_order_relaxed);
    }
    assert(count_ == 0);
  }

 private:
  struct Slots {
    explicit Slots(size_t slots) : size(slots), at(std::make_unique<std::atomic<ibv_ah*>[]>(slots)) {}
    size_t size;  // a power of two
    std::unique_ptr<std::atomic<ibv_ah*>[]> at;
  };

  static constexpr size_t kFirstSize = 16;

  // Marks a slot whose address was removed; a search continues behind it. Never dereferenced.
  static ibv_ah* removed() { return reinterpret_cast<ibv_ah*>(uintptr_t{1}); }

  static size_t hash(const ibv_ah* address) {
    return (reinterpret_cast<uintptr_t>(address) >> 4) * size_t{0x9e3779b97f4a7c15} >> 20;
  }

  static std::atomic<ibv_ah*>* find(const Slots& slots, const ibv_ah* address) {
    if (!address || address == removed()) return nullptr;
    for (size_t i = hash(address), left = slots.size; left != 0; ++i, --left) {
      std::atomic<ibv_ah*>& slot = slots.at[i & (slots.size - 1)];
      const ibv_ah* found = slot.load(std::memory_order_acquire);
      if (found == address) return &slot;
      if (!found) return nullptr;
    }
    return nullptr;
  }

  static void put(const Slots& slots, ibv_ah* address) {
    for (size_t i = hash(address);; ++i) {
      std::atomic<ibv_ah*>& slot = slots.at[i & (slots.size - 1)];
      const ibv_ah* found = slot.load(std::memory_order_relaxed);
      if (!found || found == removed()) return slot.store(address, std::memory_order_release);
    }
  }

  // A sender may still search the old slots, so they stay; all of them together are smaller than the last.
  const Slots* grow(const Slots* old) {
    auto fresh = std::make_unique<Slots>(old ? old->size * 2 : kFirstSize);
    for (size_t i = 0; old && i < old->size; ++i) {
      ibv_ah* address = old->at[i].load(std::memory_order_relaxed);
      if (address && address != removed()) put(*fresh, address);
    }
    all_.push_back(std::move(fresh));
    current_.store(all_.back().get(), std::memory_order_release);
    return all_.back().get();
  }

  std::atomic<const Slots*> current_ = nullptr;
  std::vector<std::unique_ptr<Slots>> all_;
  size_t count_ = 0;
};

}  // namespace dapple::udapl
