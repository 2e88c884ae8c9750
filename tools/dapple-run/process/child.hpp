// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

namespace dapple::run {

// fork() for a program whose exit code is needed. This process may have been started with SIGCHLD ignored, which would
// lose the code; the child has SIGCHLD as this process found it. Ends this process if there is no other one.
pid_t fork_awaited();
// The same, but returns -1 and sets errno if there is no other one.
pid_t try_to_fork_awaited();
// The status of an awaited child that has ended, as waitpid() returns it.
int await(pid_t child);

// Runs `execute` in a child, passes signals on to it, and returns its exit code: 128 and more for a signal.
// `look`, if there is one, is called again and again while the child runs, and waits a little.
int run_child(void (*execute)(void* argument), void* argument, void (*look)(void* watching, pid_t child) = nullptr,
              void* watching = nullptr);

}  // namespace dapple::run
