// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <atomic>

namespace dapple::soft {

class Context;

// dapple-run --hang hears of each device before its end, in the thread that closes it. Objects that the program has
// left use the device.
using ClosingWatch = void (*)(const Context& context);
inline constinit std::atomic<ClosingWatch> closing_watch = nullptr;

}  // namespace dapple::soft
