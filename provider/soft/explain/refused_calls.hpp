// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string>

namespace dapple::soft::explain {

// Reports that a call returns `error` to the program, with this thread's refusal and the place of the call. `verb`:
// "ibv_modify_qp"; `name`: name_of() its object. EBUSY: the report has those that use the object. errno stays.
void report_refused_call(const char* verb, const std::string& name, int error, const void* object);

}  // namespace dapple::soft::explain
