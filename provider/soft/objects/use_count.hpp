// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The number of objects that use another one. A user counts itself once, and leaves once.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace dapple::soft {

inline void leave(std::atomic<uint32_t>& users) {
  [[maybe_unused]] const uint32_t before = users.fetch_sub(1);
  assert(before > 0);
}

}  // namespace dapple::soft
