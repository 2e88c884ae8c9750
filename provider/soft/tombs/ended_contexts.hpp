// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The devices that the program has closed.
#pragma once

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft::tombs {

// True after a report: the program closes a device that it has closed before.
bool has_ended(const ibv_context* context);
// The program closes the device. The memory of the context stays until forget_context().
void end_context(const ibv_context* context);
void forget_context(const ibv_context* context);

}  // namespace dapple::soft::tombs
