// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "provider/soft/check/reports/report.hpp"

namespace dapple::soft::explain {

// Two sentences.
struct Explanation {
  std::string reason;
  std::string remedy;
};
// Of a text as Refusal has it; `remedy` if the text has none.
Explanation explanation_of(std::string_view text, const char* remedy);
// "EINVAL", or "the error 1234".
std::string error_words(int error);
// Reports that `call` fails with EBUSY, and who uses the object.
void report_busy(const char* call, const void* object, Explanation explanation);
// Reports that `call`, with its object, fails with `error`, and remembers the line for dappledv_refusal().
void report_failed_call(check::Level level, const std::string& call, int error, const Explanation& explanation,
                        const std::vector<check::ReportedStack>& places);

// Reports that a function of a library returns an error to the program. False if nothing is reported.
bool report_failure(const char* text, const char* remedy);

// A library says that the program has left a call out, which it needs after this one. False without --check.
bool report_missing_call(const char* text, const char* remedy, const check::Stack& after);

// Reports that a verb returns `error` to the program, with this thread's refusal and the place of the call. `verb`:
// "ibv_modify_qp"; `name`: name_of() its object. EBUSY: the report has those that use the object. errno stays.
void report_refused_call(const char* verb, const std::string& name, int error, const void* object);

}  // namespace dapple::soft::explain
