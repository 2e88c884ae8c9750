// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Prints a line for a refused attribute: the return value names only the argument, which may be a structure of fifteen
// attributes, and not the limit. Under dapple-run --explain and --check the report of the call has the text instead,
// which this thread keeps until then. Any thread.
#pragma once

#include <cstdint>

#include "udapl/core/error.hpp"

namespace dapple::udapl {

class Ia;

void log_refused(const Ia& ia, const char* what, int64_t value, const char* why);

// True if `what` does not exceed the limit; otherwise prints the line.
bool within(const Ia& ia, const char* what, uint64_t value, uint64_t limit);

// Why an argument of the present call is refused: "it must be above 0". The report of the call has the value itself.
// Without these options the functions do nothing and print nothing.
void expect(const char* why);
void expect_at_most(uint64_t limit);
// The same for a member of an argument that is a structure.
void expect_of(const char* what, int64_t value, const char* why);
inline constexpr char kForeignFlags[] = "it has flags that are unknown, or that the completion flags of the EP lack";
tl::unexpected<Error> refuse(Subtype argument, const char* why);
tl::unexpected<Error> refuse_above(Subtype argument, uint64_t limit);

// "an EVD's length is 0: it must be above 0", of the present call; empty if there is none.
const char* kept_refusal();
// The text has a value: that of the argument, or of one of its members.
bool kept_has_value();
// A call begins.
void forget_refusal();

}  // namespace dapple::udapl
