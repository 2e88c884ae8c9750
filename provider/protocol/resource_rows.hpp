// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs objects of a process, in memory that it shares with dappled, for `rdma resource`. The process writes a row
// when it makes, changes or destroys an object. dappled reads the rows at any time, without stopping anybody, and
// trusts none of them. The counts are right also if there are more objects than rows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "provider/protocol/shared_row.hpp"

namespace dapple::soft {

enum class ResourceKind : uint8_t { kNone, kPd, kRegion, kWindow, kCq, kSrq, kQp, kAddressHandle, kContext };
inline constexpr size_t kResourceKinds = 9;

struct ResourceRow {
  ResourceKind kind = ResourceKind::kNone;
  uint8_t type = 0;                // of a QP: enum ibv_qp_type; of a region: kOnDemandRegion or 0
  uint8_t port = 0;                // of a QP; 0: none yet
  uint8_t max_dest_rd_atomic = 0;  // of a QP
  uint32_t device = 0;             // DeviceInfo::index
  uint32_t number = 0;             // of a QP: its QPN; of a region: its key; of a CQ: its depth
  uint32_t context = 0;            // the place of its row, and so on; 0: it has none
  uint32_t pd = 0;
  union {
    uint32_t send_cq = 0;
    uint32_t page_faults;  // of an on-demand region, in pages; so the next two
  };
  union {
    uint32_t receive_cq = 0;
    uint32_t page_invalidations;
  };
  union {
    uint32_t srq = 0;
    uint32_t page_prefetches;
  };
  uint32_t remote_qpn = 0;
  uint32_t receive_psn : 24 = 0;  // where the connection began
  uint32_t path_mtu : 8 = 0;      // of a QP, in units of 256 bytes
  uint32_t send_psn : 24 = 0;
  uint32_t peers_access : 8 = 0;  // of a QP: the first bits of enum ibv_access_flags that its peer has
  uint32_t state = 0;             // of a QP: enum ibv_qp_state
  uint64_t length = 0;            // of a region

  bool is_used() const { return kind != ResourceKind::kNone; }
};
static_assert(sizeof(ResourceRow) == 56);

inline constexpr uint32_t kErrorState = 6;  // IBV_QPS_ERR
inline constexpr uint8_t kOnDemandRegion = 1;

// The state has other writers, too: the queue pair may fail by itself. So have the pages of a region: each thread that
// uses it counts them.
class SharedResourceRow : public SharedRow<ResourceRow> {
 public:
  void add_pages(uint32_t faults, uint32_t invalidations, uint32_t prefetches) {
    add(offsetof(ResourceRow, page_faults), faults);
    add(offsetof(ResourceRow, page_invalidations), invalidations);
    add(offsetof(ResourceRow, page_prefetches), prefetches);
  }
  void set_state(uint32_t state) { words_[offsetof(ResourceRow, state) / 4].store(state, std::memory_order_relaxed); }
  uint32_t state() const { return words_[offsetof(ResourceRow, state) / 4].load(std::memory_order_relaxed); }

 private:
  void add(size_t offset, uint32_t count) { words_[offset / 4].fetch_add(count, std::memory_order_relaxed); }
};
static_assert(sizeof(SharedResourceRow) == 60);

// Enough for most programs.
inline constexpr uint32_t kMaxResourceRows = 1000;
// As many devices as there can be.
inline constexpr uint32_t kMaxCountedDevices = 64;

struct ResourceCounts {
  std::atomic<uint32_t> device;  // DeviceInfo::index; 0: the place is free
  std::atomic<uint32_t> counts[kResourceKinds];
};

struct SlotResources {
  ResourceCounts counts[kMaxCountedDevices];
  // All rows from here on are free and were never written.
  std::atomic<uint32_t> end;
  SharedResourceRow rows[kMaxResourceRows];
};

// The number of rows to look at, whatever the process has written there.
inline uint32_t end_of_rows(const SlotResources& resources) {
  const uint32_t end = resources.end.load(std::memory_order_acquire);
  return end < kMaxResourceRows ? end : kMaxResourceRows;
}

// When the rows have no owner, or a new one.
inline void clear(SlotResources& resources) {
  for (ResourceCounts& of_device : resources.counts) {
    of_device.device.store(0, std::memory_order_relaxed);
    for (std::atomic<uint32_t>& count : of_device.counts) count.store(0, std::memory_order_relaxed);
  }
  for (uint32_t i = 0; i < end_of_rows(resources); i++) resources.rows[i].write({});
  resources.end.store(0, std::memory_order_release);
}

}  // namespace dapple::soft
