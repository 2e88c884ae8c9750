// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The counters, devices, transports and used GIDs of all slots in one memfd of fixed size. dappled makes it; each
// member gets the descriptor with its slot, maps its own part, and hands the descriptor to the next dappled if this one
// dies.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "provider/protocol/counters.hpp"
#include "provider/protocol/device_rows.hpp"
#include "provider/protocol/gid_use_rows.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/resource_rows.hpp"
#include "provider/protocol/transport_rows.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// The memory that a slot's owner shares with dappled.
struct SlotPages {
  SlotCounters counters;
  SlotDevices devices;
  SlotTransports transports;
  SlotGidUses gid_uses;
  SlotResources resources;
};

// Whole pages on most machines, so that an owner does not map its neighbours'.
inline constexpr size_t kSlotPagesSize = 90112;
static_assert(sizeof(SlotPages) <= kSlotPagesSize);
// The part that has memory from the start: all but most of the rows of resources, which few programs need.
inline constexpr size_t kSlotFirstSize = 32768;
inline constexpr size_t kSlotResourceRows = offsetof(SlotPages, resources) + offsetof(SlotResources, rows);
static_assert(kSlotResourceRows < kSlotFirstSize);
inline constexpr size_t kAllSlotPagesSize = (kMaxSlots + 1) * kSlotPagesSize;  // of whole blocks
// Behind the pages of all slots each slot has room for dapple-run --check=races, which has memory only then.
inline constexpr size_t kSlotRacesSize = 524288;
inline constexpr size_t kCountersFileSize = kAllSlotPagesSize + kMaxSlots * kSlotRacesSize;

// Empty on failure. The size of the file cannot change afterwards.
OwnedFd make_counters_file();

// Tells whether the descriptor is such a file's. Another file could be truncated, and a reader would crash.
bool is_counters_file(int fd);

// The pages of one slot, which stay mapped. Null on failure.
SlotPages* map_counters(int fd, uint32_t slot);

// The part of a slot for --check=races (provider/soft/check/races/race_pages.hpp), which stays mapped. Null on failure.
void* map_races(int fd, uint32_t slot);

// The rows of resources of a slot, for its owner, which takes memory for more of them when it needs them. Any thread.
class ResourceRowMemory {
 public:
  // All rows have memory.
  ResourceRowMemory() = default;
  // `file` outlives the object.
  ResourceRowMemory(int file, uint32_t slot);

  // Tells whether the row has memory. Takes it if necessary.
  bool has(uint32_t row) { return row < ready_.load(std::memory_order_relaxed) || take(row); }

 private:
  bool take(uint32_t row);

  int file_ = -1;
  off_t rows_ = 0;  // the place of the first row in the file
  std::atomic<uint32_t> ready_{kMaxResourceRows};
};

// dappled's view of all slots, dead owners' included.
class CountersSum {
 public:
  CountersSum() = default;
  CountersSum(const CountersSum&) = delete;
  CountersSum& operator=(const CountersSum&) = delete;
  ~CountersSum();

  // Maps the first `slots` slots of such a file, and takes the memory of their first part, so that no access of dappled
  // or of a slot's owner ends in SIGBUS. These slots are covered then. `fd` is the same in each call. 0, or an errno.
  int cover(int fd, uint32_t slots);
  // Adds the counters of all slots that are covered.
  void add_to(uint64_t (&sums)[kCounterCount]) const;
  SlotPages* at(uint32_t slot) const;  // null if the slot is not covered

 private:
  // Few programs need few addresses.
  static constexpr uint32_t kSlotsOfABlock = 128;
  static constexpr size_t kBlockSize = kSlotsOfABlock * kSlotPagesSize;
  static constexpr uint32_t kBlocks = (kMaxSlots + kSlotsOfABlock - 1) / kSlotsOfABlock;

  char* blocks_[kBlocks] = {};
  uint32_t covered_ = 0;
};

}  // namespace dapple::soft
