// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The extensions that read the counters of an IA, an EP or an EVD.
#pragma once

#include <dat2/udat.h>

#include <cstdarg>

namespace dapple::udapl::functions {

// args holds the arguments that the macros of dat_ib_extensions.h pass after the operation.
DAT_RETURN query_counters(DAT_HANDLE handle, va_list args);
// Prints a line to stdout for each counter that is not 0, or for the requested counter.
DAT_RETURN print_counters(DAT_HANDLE handle, va_list args);
// For an IA: starts or stops the kernel's and the device's counters of its port.
DAT_RETURN start_counters(DAT_HANDLE handle, va_list args);
DAT_RETURN stop_counters(DAT_HANDLE handle, va_list args);

}  // namespace dapple::udapl::functions
