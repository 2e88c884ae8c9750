// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <dat2/udat.h>

#include <stdexcept>
#include <string>

namespace dapple::perf {

// Ends the program; what() is one line for the user.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Such as "DAT_INVALID_ADDRESS DAT_INVALID_ADDRESS_UNREACHABLE".
std::string text_of(DAT_RETURN result);

// Throws unless result is DAT_SUCCESS. call: the function that returned it. advice: the end of the message.
void check(DAT_RETURN result, const char* call, const char* advice);

// Describes the status for the user.
std::string text_of(DAT_DTO_COMPLETION_STATUS status);

}  // namespace dapple::perf
