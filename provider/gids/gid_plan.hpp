// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The tables of GIDs of a real machine, as a file has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "provider/protocol/messages.hpp"
#include "provider/system/problem.hpp"

namespace dapple::gids {

inline constexpr uint32_t kMaxPlanRows = 1024;
inline constexpr size_t kMaxGidFile = 256 * 1024;

struct PlanRow {
  uint8_t gid[16] = {};
  uint8_t device = 0;  // counted in the order of the file
  uint8_t index = 0;
  soft::GidType type = soft::GidType::kRoceV2;
  // Rows of one address of one netdev have one number, of which each type has at most one row.
  uint8_t address = 0;
};

// Sorted by device and index. Fixed width, without padding: two plans are equal if their bytes are.
struct GidPlan {
  uint32_t device_count = 0;
  uint32_t row_count = 0;
  PlanRow rows[kMaxPlanRows];
};
static_assert(std::has_unique_object_representations_v<GidPlan>);
static_assert(soft::kMaxGids <= UINT8_MAX && soft::kMaxDevices <= UINT8_MAX);

// Reads what show_gids prints: the columns DEV, PORT, INDEX, GID, IPv4 (which may be missing), VER and DEV. Each port
// is a device. False at the first wrong line; `problem` has its number and the reason.
bool read_show_gids(std::string_view text, GidPlan& plan, soft::Problem& problem);

// The same for an open file, from its begin. `name` is for `problem`.
bool read_gid_file(int file, const char* name, GidPlan& plan, soft::Problem& problem);

}  // namespace dapple::gids
