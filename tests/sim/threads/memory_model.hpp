// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory of a weakly ordered machine, as C++20 describes it. Each atomic object keeps its last stores. A load may
// return any of them that coherence, happens-before and the order of the sequentially consistent operations do not
// forbid; a random number selects one. Plain accesses that are not ordered are data races, which the model reports.
//
// The model executes one operation at a time, in the order of its calls. So a load never returns a store that comes
// later (load buffering). A store may come in front of earlier ones of other threads in the modification order.
// docs/testing.md has the limits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/random.hpp"
#include "tests/sim/threads/clock.hpp"

namespace dapple::sim {

using Order = std::memory_order;
using Site = const void*;  // the place in the program, as a return address

inline bool acquires(Order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
inline bool releases(Order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

// The stores of one atomic object.
class Location {
 public:
  struct Store {
    uint64_t value = 0;
    Epoch by;
    uint32_t in_total_order = 0;   // 0: not sequentially consistent
    bool is_modification = false;  // of the value before, so nothing comes between them
    uint64_t time = 0;
    Site site = nullptr;
    Knowledge carried;
  };
  static constexpr uint32_t kMaxStores = 8;  // of which a load can choose
  static constexpr uint32_t kMaxReads = 4;   // remembered for each thread

  Location(uint64_t place, uint32_t bytes) : address(place), size(bytes) {}

  uint64_t last() const { return end_ - 1; }
  uint64_t first() const { return end_ > kMaxStores ? end_ - kMaxStores : 0; }
  Store& at(uint64_t index) { return stores_[index % kMaxStores]; }
  void add(const Store& store) { stores_[end_++ % kMaxStores] = store; }
  // Puts the store in front of others, which come later in the modification order.
  void insert(uint64_t index, const Store& store);

  // The latest store that the reads of coherent threads forbid to go behind.
  uint64_t read_floor(const Clock& seen) const;
  void note_read(Epoch reader, uint64_t index);
  // True if all earlier accesses happen before somebody who knows `before`.
  bool is_ordered(const Clock& before) const;

  const uint64_t address;
  const uint32_t size;
  uint64_t read_in_total_order = 0;  // the index of the store that the last sequentially consistent load returned
  uint32_t time_of_that_read = 0;    // its place in the total order
  Location* next = nullptr;          // in the same eight bytes

 private:
  struct Read {
    Epoch by;
    uint64_t index = 0;
  };
  Store stores_[kMaxStores];
  uint64_t end_ = 0;
  Read reads_[kMaxThreads][kMaxReads];
};

class MemoryModel {
 public:
  // `fail` gets the description of a data race. `weakness`: the probability, in a thousand, that a load looks for an
  // older store.
  MemoryModel(uint64_t seed, uint32_t weakness, std::function<void(const std::string&)> fail);
  ~MemoryModel();
  MemoryModel(const MemoryModel&) = delete;
  MemoryModel& operator=(const MemoryModel&) = delete;

  // A load returns no store that was overwritten longer ago than this.
  static constexpr uint64_t kLongestStaleness = 20'000;
  uint64_t now = 0;  // nanoseconds; its owner sets it

  void start(uint32_t thread, uint32_t parent);
  void join(uint32_t thread, uint32_t ended);

  struct Loaded {
    uint64_t value;
    uint64_t behind;  // number of newer stores
  };
  Loaded load(uint32_t thread, const void* object, uint32_t size, Order order, Site site);
  void store(uint32_t thread, void* object, uint32_t size, uint64_t value, Order order, Site site);
  // `change` returns the new value; nothing is stored if it returns false.
  using Change = bool (*)(uint64_t& value, uint64_t operand, uint64_t expected);
  uint64_t modify(uint32_t thread, void* object, uint32_t size, Change change, uint64_t operand, uint64_t expected,
                  Order order, Order failure, Site site);
  void fence(uint32_t thread, Order order);
  // membarrier(): one thread makes all of these execute a full fence.
  void fence_all(const std::vector<uint32_t>& threads);

  // A lock, a message or another object of the kernel passes knowledge on.
  void release(uint32_t thread, Knowledge& to);
  void acquire(uint32_t thread, const Knowledge& from) { threads_[thread].known.join(from); }

  // The present moment of a thread, and whether another one knows that it is over.
  Epoch epoch(uint32_t thread) const { return {thread, threads_[thread].known.before.of[thread]}; }
  bool knows(uint32_t thread, Epoch moment) const { return threads_[thread].known.before.covers(moment); }

  void plain_read(uint32_t thread, const void* bytes, size_t size, Site site);
  void plain_write(uint32_t thread, void* bytes, size_t size, Site site);
  // The memory has a new owner, and nothing of its past counts.
  void forget(const void* bytes, size_t size);

 private:
  struct Thread {
    Knowledge known;
    Knowledge released;  // at the last release fence
    Knowledge loaded;    // by relaxed loads, for the next acquire fence
  };
  // Eight bytes.
  struct Granule {
    Epoch written[8];
    Epoch read[8];
    Site writer = nullptr;
    Site reader = nullptr;
    Location* location = nullptr;
  };
  struct Page;
  class Pages;

  void advance(uint32_t thread);
  Granule& granule(uint64_t address);
  Location& location(uint32_t thread, const void* object, uint32_t size, bool writes, Site site);
  uint64_t floor_of(uint32_t thread, Location& at, bool total);
  void take(uint32_t thread, Location& at, uint64_t index, Order order);
  void put(uint32_t thread, Location& at, uint64_t value, Order order, const Knowledge* before, Site site);
  uint64_t place_of_store(uint32_t thread, Location& at, Order order);
  void fence_in_total_order(uint32_t thread);
  void race(uint32_t thread, const char* access, uint64_t address, Epoch other, Site site, Site other_site);

  Random random_;
  const uint32_t weakness_;
  const std::function<void(const std::string&)> fail_;
  Thread threads_[kMaxThreads];
  Clock fenced_;              // seen by sequentially consistent fences so far
  uint32_t total_order_ = 0;  // the number of operations in it
  std::unique_ptr<Pages> pages_;
};

}  // namespace dapple::sim
