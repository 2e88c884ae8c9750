// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The agreement between our registries and our providers beyond the ABI of a provider's table.
#pragma once

#include <cstdint>

namespace dapple::udapl::common {

// Both versions of the API dispatch through the first word of a handle, but their tables differ. So the `extension`
// word of our tables holds the version, and a registry refuses a handle of the other version. The original has a
// pointer or null there, and no pointer has these values.
inline constexpr std::uintptr_t kTableMark12 = 0xda12;
inline constexpr std::uintptr_t kTableMark20 = 0xda20;

}  // namespace dapple::udapl::common
