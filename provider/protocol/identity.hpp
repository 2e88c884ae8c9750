// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The software device's names and numbers where libibverbs expects the kernel's.
#pragma once

#include <stdint.h>

#include "provider/common/driver_number.hpp"

namespace dapple::soft {

inline constexpr uint32_t kDriverId = provider::kDappleDriver;

// The kernel's character devices have majors below 512.
inline constexpr unsigned kUverbsMajor = 4000;
inline constexpr unsigned kRdmaCmMajor = 4001;
// The kernel has at most 1,024 of them.
inline constexpr unsigned kFirstUverbs = 4096;

}  // namespace dapple::soft
