// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/device/refusal.hpp"

namespace dapple::provider {

void report_refused(const char* function, int error) noexcept;

// Calls a function of libdapple, and returns its errno. Under dapple-run --explain and --check a mistake of the program
// (EINVAL, EFAULT, EBUSY) is reported with its reason. Other errors are answers: this machine, or this context, lacks
// something.
template <class Call>
int explained(const char* function, Call call) noexcept {
  const int error = call();
  if (error != 0) [[unlikely]]
    report_refused(function, error);
  return error;
}

}  // namespace dapple::provider
