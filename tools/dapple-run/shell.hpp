// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Text that a POSIX shell reads.
#ifndef DAPPLE_TOOLS_DAPPLE_RUN_SHELL_HPP
#define DAPPLE_TOOLS_DAPPLE_RUN_SHELL_HPP

namespace dapple::run {

// On standard output: the line that gives a shell's variable the value that it has in this process' environment, for
// the programs that the shell starts. Without a value, the line that removes the variable.
void print_assignment(const char* variable);

}  // namespace dapple::run

#endif  // DAPPLE_TOOLS_DAPPLE_RUN_SHELL_HPP
