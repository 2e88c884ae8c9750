// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/network/socket_process.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled {

// dappled inherits the limits of the program that starts it, but it serves all programs of the network namespace. So it
// raises its soft limits to the hard ones, and the hard limit of open files if it may.
void raise_limits();

// The process that has started this one. Call it before daemonize().
soft::SocketProcess find_starter();

// Tells whether a system call failed because of dappled's limit of open files. Descriptors that members hold in queues
// count against it, too.
bool is_file_shortage(int error);
// The same, or because of its limits of memory.
bool is_shortage(int error);

// One line for people: the limit, and the program that dappled has it from. `error` is a shortage.
void describe_shortage(int error, const soft::SocketProcess& starter, soft::Problem& problem);

}  // namespace dapple::dappled
