// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::tombs {

// The operations around all others but one, for a program under dapple-run --check: a call for an object that the
// program has destroyed is reported, and fails with EINVAL. For one table.
const Operations& guarded_operations(const Operations& operations);

}  // namespace dapple::soft::tombs
