// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stdint.h>

namespace dapple::provider {

// The number of dapple's own driver. The kernel counts its drivers from 0 (enum rdma_driver_id).
inline constexpr uint32_t kDappleDriver = 0x4C504144;

}  // namespace dapple::provider
