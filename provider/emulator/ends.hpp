// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::provider {

// Makes the running emulator report when the process ends by exit(), quick_exit(), or one of the usual signals, unless
// the program handles that signal. Under the check, findings that wait are also written before a signal that ends a
// broken program. May be called again.
void report_before_the_end();

// True if a signal handler is among the callers. It may have interrupted any function, such as malloc(), and may
// nevertheless call exit().
bool in_signal_handler();

}  // namespace dapple::provider
