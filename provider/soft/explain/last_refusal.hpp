// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The first line of this thread's most recent report of a call that has failed, for dappledv_refusal().
#pragma once

#include <string>

namespace dapple::soft::explain {

void remember_refusal(const std::string& line);

// Null if there is none. `count`: how many lines there were.
const char* last_refusal(unsigned& count);

}  // namespace dapple::soft::explain
