// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::soft {

// Starts a detached thread of ours in a program: with a small stack beside the program's thread-local variables, and
// with all signals blocked but those of its own faults, as the program's signals are for its own threads. 0, or an
// errno.
int start_own_thread(void* (*run)(void*), void* argument);

// Calls a function that needs more stack than a thread may have left: on a thread of ours, and waits for its end.
// Without such a thread it calls the function itself.
void run_with_room(void* (*run)(void*), void* argument);

}  // namespace dapple::soft
