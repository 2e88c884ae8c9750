// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

#include <algorithm>
#include <bit>

namespace dapple::soft {

// The room of a queue whose program asks for `wanted` places, which is at most `most`. NICs and rxe give more than
// that, and some programs rely on it: they post one request more. The rule is rxe's, which keeps one place of a power
// of two free. No queue has more than the device reports.
constexpr uint32_t granted_depth(uint32_t wanted, uint32_t most) {
  return std::min(std::bit_ceil(wanted + 1) - 1, most);
}
static_assert(granted_depth(0, 16384) == 0 && granted_depth(1, 16384) == 1 && granted_depth(16, 16384) == 31);
static_assert(granted_depth(16384, 16384) == 16384);

}  // namespace dapple::soft
