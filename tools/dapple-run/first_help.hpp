// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::run {

// For somebody who runs dapple-run without any word: prints what to type, on standard error, and ends this process with
// kWrongUse.
[[noreturn]] void first_help();

}  // namespace dapple::run
