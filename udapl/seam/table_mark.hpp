// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The agreement between our registries and our providers beyond the ABI of a provider's table.
#pragma once

#include <cstdint>

namespace dapple::dat {

// Both versions of the API dispatch through the first word of a handle, but their tables differ. So our tables say in
// their `extension` word which version they are of: a registry refuses a handle of the other one. The original has a
// pointer there, or nothing, and no pointer has these values.
inline constexpr std::uintptr_t kTableMark12 = 0xda12;
inline constexpr std::uintptr_t kTableMark20 = 0xda20;

}  // namespace dapple::dat
