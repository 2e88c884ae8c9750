// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_TOOLS_DAPPLE_RUN_CHILD_HPP
#define DAPPLE_TOOLS_DAPPLE_RUN_CHILD_HPP

namespace dapple::run {

// Runs `execute` in a child, passes signals on to it, and returns its exit code: 128 and more for a signal.
int run_child(void (*execute)(void* argument), void* argument);

}  // namespace dapple::run

#endif  // DAPPLE_TOOLS_DAPPLE_RUN_CHILD_HPP
