// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Runs a program once for each call of a verb that could fail.
#pragma once

#include <string>

namespace dapple::run {

struct EnumerateOptions {
  std::string program;  // faults only in programs of this name; empty: in all
  double timeout = 0;   // seconds for a run; 0: five times the first run's, and five
};

// Runs `execute` in a child without a fault, and notes the places from which verbs are called. Then lets the
// first call from each place fail in a run of its own, and likewise the last call if there are several. Prints a table
// with the end of each run. Returns dapple-run's exit code: 0, or 1 if a run crashed or hung.
int enumerate(const EnumerateOptions& options, void (*execute)(void* argument), void* argument);

}  // namespace dapple::run
