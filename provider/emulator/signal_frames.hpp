// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_EMULATOR_SIGNAL_FRAMES_HPP
#define DAPPLE_PROVIDER_EMULATOR_SIGNAL_FRAMES_HPP

namespace dapple::provider {

// True if a handler of a signal is among the callers. Such a handler may have interrupted anything, malloc() for
// example, and may call exit() all the same.
bool in_signal_handler();

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_SIGNAL_FRAMES_HPP
