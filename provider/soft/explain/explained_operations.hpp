// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::explain {

// The same operations for a program under dapple-run --explain or --check: each call that fails is reported. Only the
// first call's argument counts.
const Operations& explained_operations(const Operations& operations);

}  // namespace dapple::soft::explain
