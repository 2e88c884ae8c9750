// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator's messages. Any thread and any signal handler may call these functions.
#pragma once

namespace dapple::provider {

// Writes one line to standard error, in one call, with the prefix "dapple: emulator: ".
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

// For dapple-run: appends a line with this process's id to the file in DAPPLE_CHECK_LOG. Does nothing if that is unset.
void note_for_launcher(const char* what, unsigned findings);

}  // namespace dapple::provider
