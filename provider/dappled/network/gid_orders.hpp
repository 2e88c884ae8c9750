// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The orders in which programs see a device's GIDs. An order has a number, and is shared by all programs that chose it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "provider/dappled/network/device_table.hpp"
#include "provider/gids/gid_layout.hpp"
#include "provider/gids/gid_plan.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

// One thread.
class GidOrders {
 public:
  // These two always exist, and have no users to count.
  static constexpr uint32_t kOwn = 0;    // that of the table of devices
  static constexpr uint32_t kTwins = 1;  // each GID as RoCE v1 and as RoCE v2
  static constexpr uint32_t kMax = 32;

  explicit GidOrders(const DeviceTable& devices) : devices_(devices) {}

  // The order of this file of show_gids, which has one user more; kOwn if `problem` has the reason why there is none.
  uint32_t take(int file, soft::Problem& problem);
  void use(uint32_t order);
  // A user has gone. Without users an order's number is free for another file.
  void leave(uint32_t order);

  // `device` comes from DeviceTable::show(), and becomes what programs of this order are told.
  void show(uint32_t order, soft::DeviceInfo& device);
  // After DeviceTable::restore_gids(). `device` comes from DeviceTable::show().
  void restore(uint32_t order, const soft::AnnounceGidsRequest& known, const soft::DeviceInfo& device);
  // The index under which programs of this order know an entry of this device, which comes from DeviceTable::show().
  // That of RoCE v2, if there is one; kMaxGids if there is none.
  uint32_t index_of(uint32_t order, const soft::DeviceInfo& device, uint32_t base_index);

 private:
  struct Planned {
    gids::GidPlan plan;
    // By GUID and rails: programs may see a netdev's first device with all addresses, or with its share of them.
    std::map<std::pair<uint64_t, uint8_t>, gids::GidLayout> layouts;
    uint32_t users = 0;

    bool has(const soft::DeviceInfo& device) const { return soft::number_of(device) < plan.device_count; }
    std::span<const gids::PlanRow> rows_of(const soft::DeviceInfo& device) const;
    gids::GidLayout& layout_of(const soft::DeviceInfo& device);
  };
  static constexpr size_t kMaxLayouts = 512;

  const DeviceTable& devices_;
  std::unique_ptr<Planned> planned_[kMax];  // null for kOwn, kTwins and numbers without users
};

}  // namespace dapple::dappled
