// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/gid_orders.hpp"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <new>

namespace dapple::dappled {

std::span<const gids::PlanRow> GidOrders::Planned::rows_of(const soft::DeviceInfo& device) const {
  const std::span<const gids::PlanRow> rows(plan.rows, plan.row_count);
  const uint32_t number = soft::number_of(device);
  return {std::ranges::lower_bound(rows, number, {}, &gids::PlanRow::device),
          std::ranges::upper_bound(rows, number, {}, &gids::PlanRow::device)};
}

gids::GidLayout& GidOrders::Planned::layout_of(const soft::DeviceInfo& device) {
  // Netdevs come and go. A device that is still there gets its indexes anew.
  if (layouts.size() >= kMaxLayouts) layouts.clear();
  return layouts[{device.guid, device.rails}];
}

uint32_t GidOrders::take(int file, soft::Problem& problem) {
  std::unique_ptr<Planned> made(new (std::nothrow) Planned);
  if (made == nullptr) {
    problem.set(ENOMEM, "dappled has no memory for the order of DAPPLE_GIDS");
    return kOwn;
  }
  if (!gids::read_gid_file(file, "the file of DAPPLE_GIDS", made->plan, problem)) return kOwn;
  uint32_t free = kOwn;
  for (uint32_t i = kTwins + 1; i < kMax; i++) {
    if (planned_[i] == nullptr) {
      if (free == kOwn) free = i;
    } else if (memcmp(&planned_[i]->plan, &made->plan, sizeof made->plan) == 0) {
      planned_[i]->users++;
      return i;
    }
  }
  if (free == kOwn) {
    problem.set(EBUSY, "dappled has %u orders of DAPPLE_GIDS already, and takes no more; end a program",
                kMax - kTwins - 1);
    return kOwn;
  }
  made->users = 1;
  planned_[free] = std::move(made);
  return free;
}

void GidOrders::use(uint32_t order) {
  assert(order < kMax);
  if (order <= kTwins) return;
  assert(planned_[order] != nullptr);
  planned_[order]->users++;
}

void GidOrders::leave(uint32_t order) {
  assert(order < kMax);
  if (order <= kTwins) return;
  assert(planned_[order] != nullptr && planned_[order]->users > 0);
  if (--planned_[order]->users == 0) planned_[order].reset();
}

void GidOrders::show(uint32_t order, soft::DeviceInfo& device) {
  assert(order < kMax && (order <= kTwins || planned_[order] != nullptr));
  if (order == kTwins) return gids::twin(device);
  if (order == kOwn || !planned_[order]->has(device)) return;
  Planned& planned = *planned_[order];
  planned.layout_of(device).show(planned.rows_of(device), devices_.free_gids(device), device);
}

void GidOrders::restore(uint32_t order, const soft::AnnounceGidsRequest& known, const soft::DeviceInfo& device) {
  if (order <= kTwins || device.guid != known.guid || !planned_[order]->has(device)) return;
  planned_[order]->layout_of(device).restore(known, device);
}

uint32_t GidOrders::index_of(uint32_t order, const soft::DeviceInfo& device, uint32_t base_index) {
  if (order == kOwn) return base_index;
  soft::DeviceInfo shown = device;
  show(order, shown);
  uint32_t found = soft::kMaxGids;
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    const soft::GidEntry& entry = shown.gids[i];
    if (entry.valid == 0 || entry.base_index != base_index) continue;
    if (found == soft::kMaxGids || entry.type == soft::GidType::kRoceV2) found = i;
  }
  return found;
}

}  // namespace dapple::dappled
