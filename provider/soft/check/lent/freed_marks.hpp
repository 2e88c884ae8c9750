// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Registered memory that the program has freed or unmapped. Each registration has marks of its own, because memory that
// is mapped and registered again is right for its new key and wrong for its old one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "provider/common/mutex.hpp"
#include "provider/member/heap.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {

// Internally locked; the lock is a leaf, and its holder runs no code outside of this library: a malloc() there could
// call these functions and need the lock.
class FreedMarks {
 public:
  enum class How {
    kFreed,     // the allocator has it, and gives it out again
    kUnmapped,  // it is gone for good: a NIC would go on with the old pages
    kDropped,   // the same, by madvise()
  };
  // "freed", "unmapped", "dropped".
  static const char* name_of(How how);
  struct Mark {
    How how;
    const void* memory;  // the first byte
    size_t size;
    Stack stack;
  };

  // `interest` outlives the marks.
  explicit FreedMarks(HeapInterest& interest) : interest_(interest) {}

  // `device`: as for Keys; the key knows the memory by addresses from `start` on. A
  // registration with the same key ends.
  void add(const void* device, uint32_t key, const void* memory, size_t length, uint64_t start);
  // The number of the key's registration; 0 if there is none. The key may get another registration as soon as the
  // device has ended this one.
  uint64_t number_of(const void* device, uint32_t key);
  void remove(const void* device, uint32_t key, uint64_t number);

  // True if a part of the memory is registered.
  bool is_registered(const void* memory, size_t size);
  // Marks the registered parts of the memory. Does nothing if there are kMax marks.
  void mark(const void* memory, size_t size, How how, const Stack& stack);
  // The allocator has handed the memory out again, so it no longer counts as freed.
  void take(const void* memory, size_t size);
  // The memory has been neither freed nor unmapped after all.
  void unmark(const void* memory, size_t size);

  // From now on find() finds nothing.
  void give_up() { given_up_.store(true, std::memory_order_relaxed); }

  // False: find() finds nothing.
  bool any() const { return interest_.taken.load(std::memory_order_relaxed); }
  // The first mark in the bytes that the key knows by these addresses.
  std::optional<Mark> find(const void* device, uint32_t key, uint64_t address, uint64_t length);

  Mutex& mutex() { return mutex_; }

  static constexpr size_t kMax = 1 << 15;

 private:
  struct Piece {
    uintptr_t end;
    How how;
    std::shared_ptr<const Stack> stack;
  };
  using Pieces = std::map<uintptr_t, Piece>;  // by their first bytes; they do not overlap
  struct Region {
    uintptr_t begin;
    uintptr_t end;
    uint64_t start;
    uint64_t number;
    Pieces pieces;
  };
  using Key = std::pair<const void*, uint32_t>;

  template <typename Use>
  void for_each_region(uintptr_t begin, uintptr_t end, Use use);
  void forget(std::map<Key, Region>::iterator region);
  void cut(Region& region, uintptr_t begin, uintptr_t end, bool unmapped_too);
  void publish();

  Mutex mutex_{LockRank::kFreedMarks};
  HeapInterest& interest_;
  std::map<Key, Region> regions_;
  std::multimap<uintptr_t, Region*> by_begin_;
  std::multiset<uintptr_t> ends_;
  uintptr_t longest_ = 0;  // no region has been longer
  size_t count_ = 0;       // of all pieces
  uint64_t added_ = 0;     // regions so far
  std::atomic<bool> given_up_{false};
};

}  // namespace dapple::soft::check
