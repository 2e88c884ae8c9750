// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::provider {

// True if a signal handler is among the callers. It may have interrupted any function, such as malloc(), and may
// nevertheless call exit().
bool in_signal_handler();

}  // namespace dapple::provider
