// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's messages. From any thread, and from handlers of signals.
#ifndef DAPPLE_PROVIDER_EMULATOR_SAY_HPP
#define DAPPLE_PROVIDER_EMULATOR_SAY_HPP

namespace dapple::provider {

// A line on standard error, whole, after "dapple: emulator: ".
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

// For dapple-run, if it is used: writes a line with the process's number to the file in DAPPLE_CHECK_LOG.
void note_for_launcher(const char* what, unsigned findings);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_SAY_HPP
