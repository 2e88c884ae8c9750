// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::hang {

// The same operations for a program whose hangs are explained: they note what it does with its queues. Only the first
// call's argument counts.
const Operations& noted_operations(const Operations& operations);

}  // namespace dapple::soft::hang
