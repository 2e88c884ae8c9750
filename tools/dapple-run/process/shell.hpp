// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Prints text for a POSIX shell.
#pragma once

namespace dapple::run {

// Prints on standard output the line that sets a shell's variable to its value in this process' environment, for the
// programs that the shell starts. For a variable without a value the line unsets it.
void print_assignment(const char* variable);

}  // namespace dapple::run
