// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The doors' connection to dappled, one for each process.
#pragma once

#include "provider/member/daemon_link.hpp"

namespace dapple::doors {

struct Door;

// Internally locked. The first call connects, and blocks until dappled answers. Null if dappled cannot be reached; then
// `problem` has the reason.
soft::DaemonLink* connection(soft::Problem& problem);

// Counts the connections of this process. What dappled has told over an earlier one may not be true any more.
unsigned connection_number();

// A channel that is in the table now was opened when connection_number() was `before`. If another dappled has come
// since, it may have missed this channel, and gets it now.
void restore_if_missed(const Door& door, unsigned before);

// From now on a thread of this process connects again whenever dappled has died. A child of fork() makes its own
// connection.
void watch_connection();

// Around a fork, between the handlers that take locks and those that let them go: a signal's handler that ran meanwhile
// might fork, too, or open a door, and would wait for ever. The calls may be nested.
void block_signals_for_fork();
void restore_signals_after_fork();

// Writes a line to standard error, once for each kind of problem. `lack`: what the program does without.
void complain(const soft::Problem& problem, const char* lack = "no software device");

}  // namespace dapple::doors
