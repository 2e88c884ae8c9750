// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reads the bytes as the output of show_gids, and orders the GIDs of a device by it. The bytes also choose which of the
// device's own entries are empty or in use.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <memory>

#include "provider/gids/gid_layout.hpp"
#include "provider/network/gid.hpp"

using namespace dapple;

namespace {

void check(bool good) {
  if (!good) __builtin_trap();
}

void show(gids::GidLayout& layout, const gids::GidPlan& plan, uint64_t empty, uint64_t free) {
  soft::DeviceInfo device;
  device.guid = 1;
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    soft::GidEntry& entry = device.gids[i];
    entry.base_index = static_cast<uint8_t>(i);
    if ((empty >> i & 1) != 0) continue;
    const uint8_t address[4] = {10, 0, 0, static_cast<uint8_t>(i)};
    entry.valid = 1;
    soft::ipv4_gid(address, entry.gid);
  }
  uint32_t rows = 0;
  while (rows < plan.row_count && plan.rows[rows].device == 0) rows++;
  const soft::DeviceInfo own = device;
  layout.show({plan.rows, rows}, free & empty, device);
  for (const soft::GidEntry& entry : device.gids) {
    check(entry.valid == 0 || memcmp(entry.gid, own.gids[entry.base_index].gid, sizeof entry.gid) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto plan = std::make_unique<gids::GidPlan>();
  soft::Problem problem;
  const bool good = gids::read_show_gids({reinterpret_cast<const char*>(data), size}, *plan, problem);
  check(good == (problem.line[0] == '\0') && strlen(problem.line) < sizeof problem.line);
  for (const char* at = problem.line; *at != '\0'; at++) check(*at >= ' ' && *at <= '~');
  if (!good) return 0;
  check(plan->row_count <= gids::kMaxPlanRows && plan->device_count <= soft::kMaxDevices);
  for (uint32_t i = 0; i < plan->row_count; i++) {
    check(plan->rows[i].device < plan->device_count && plan->rows[i].index < soft::kMaxGids);
  }
  uint64_t empty = UINT64_MAX << 7, free = UINT64_MAX;
  gids::GidLayout layout;
  for (size_t i = 0; i < size && i < 32; i++) {
    show(layout, *plan, empty, free);
    empty = (empty ^ data[i]) * 0x9E3779B97F4A7C15;
    free ^= empty >> 3;
  }
  return 0;
}
