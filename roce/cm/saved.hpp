// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A connection's record that survives the death of its manager, for the next manager. Plain bytes, which their keeper
// may damage.
#pragma once

#include <cstdint>
#include <type_traits>

#include "roce/cm/record.hpp"

namespace dapple::roce::cm {

struct Saved {
  State state = State::kClosed;
  uint8_t active = 0;
  uint8_t max_retries = 0;
  Path path;
  uint32_t local_id = 0;
  uint32_t remote_id = 0;
  uint64_t remote_guid = 0;
  uint32_t local_qpn = 0;
  uint32_t remote_qpn = 0;
  uint64_t transaction = 0;
  Time period = 0;
  Time lifetime = 0;
  Time hold = 0;
};

static_assert(std::is_trivially_copyable_v<Saved>);

}  // namespace dapple::roce::cm
