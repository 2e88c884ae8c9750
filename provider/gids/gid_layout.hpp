// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <span>

#include "provider/gids/gid_plan.hpp"
#include "provider/protocol/messages.hpp"

namespace dapple::gids {

// As on a ConnectX: each GID stands twice in the table, as RoCE v1 and then as RoCE v2. `device` has dappled's own
// table before the call. GIDs with an index from kMaxGids / 2 on have no room.
void twin(soft::DeviceInfo& device);

// The table of one device in the order of a plan. An address that the plan has takes the indexes that it has there.
// Other addresses take, in turn, the indexes of the plan's addresses of their kind (link-local, IPv4, IPv6) that the
// netdev lacks, and then indexes that the plan does not name. An address keeps its indexes as long as dappled's own
// table has it. One thread.
class GidLayout {
 public:
  // `rows`: the plan's rows of this device. `device` has dappled's own table before the call. `free` has a bit for each
  // entry of that table that is empty and that nobody uses.
  void show(std::span<const PlanRow> rows, uint64_t free, soft::DeviceInfo& device);
  // Takes over the table that the last dappled showed, with the present table of this one. Ignores a table that is not
  // newer than the last one.
  void restore(const soft::AnnounceGidsRequest& known, const soft::DeviceInfo& device);

 private:
  static constexpr uint8_t kNone = UINT8_MAX;
  struct Entry {
    uint8_t base_index = kNone;
    soft::GidType type = soft::GidType::kRoceV2;
  };

  void begin(const soft::DeviceInfo& device);
  bool has_indexes(uint32_t base_index) const;
  void drop(uint32_t base_index);
  void take(uint32_t index, uint32_t base_index, soft::GidType type);
  bool take_address(std::span<const PlanRow> rows, uint8_t address, const soft::GidEntry& entry);
  bool take_own_address(std::span<const PlanRow> rows, const soft::GidEntry& entry);
  bool take_address_of_kind(std::span<const PlanRow> rows, const soft::DeviceInfo& device, const soft::GidEntry& entry);
  void take_unnamed(std::span<const PlanRow> rows, const soft::GidEntry& entry);
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  uint64_t guid_ = 0;  // of the device whose table this is
  uint32_t restored_ = 0;
  Entry entries_[soft::kMaxGids];
  uint8_t gids_[soft::kMaxGids][16] = {};  // of the base indexes that have indexes here
};
static_assert(soft::kMaxGids <= 64);

}  // namespace dapple::gids
