// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Prints a line for a refused attribute: the return value names only the argument, which may be a structure of fifteen
// attributes, and not the limit. Under dapple-run --explain and --check the report of the call has the text instead,
// which this thread keeps until then. Any thread.
#pragma once

#include <cstdint>

namespace dapple::udapl {

class Ia;

void log_refused(const Ia& ia, const char* what, int64_t value, const char* why);

// True if `what` does not exceed the limit; otherwise prints the line.
bool within(const Ia& ia, const char* what, uint64_t value, uint64_t limit);

// "an EVD's length is 0: it must be above 0", of the present call; empty if there is none.
const char* kept_refusal();
// A call begins.
void forget_refusal();

}  // namespace dapple::udapl
