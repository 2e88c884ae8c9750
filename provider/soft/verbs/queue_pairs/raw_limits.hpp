// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

namespace dapple::soft::verbs {

// The entries of a table of work queues.
inline constexpr uint32_t kMaxTableSize = 1 << 11;

}  // namespace dapple::soft::verbs
