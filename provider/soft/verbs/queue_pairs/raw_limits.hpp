// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

namespace dapple::soft::verbs {

// Tables of work queues: of a process, and the entries of each.
inline constexpr uint32_t kMaxTables = 1 << 12;
inline constexpr uint32_t kMaxTableSize = 1 << 11;

}  // namespace dapple::soft::verbs
