// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The extensions that do not post or connect. args holds the arguments that the macros of dat_ib_extensions.h pass
// after the operation.
#pragma once

#include <cstdarg>

#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// The counters of an IA, an EP or an EVD.
DAT_RETURN query_counters(DAT_HANDLE handle, va_list args);
// Prints a line to stdout for each counter that is not 0, or for the requested counter.
DAT_RETURN print_counters(DAT_HANDLE handle, va_list args);

// For an IA: starts or stops the kernel's and the device's counters of its port.
DAT_RETURN start_counters(DAT_HANDLE handle, va_list args);
DAT_RETURN stop_counters(DAT_HANDLE handle, va_list args);

// Returns an IA's attributes without opening the IA for use. Their pointers are valid until close_query.
DAT_RETURN open_query(DAT_NAME_PTR name, va_list args);
// Closes a handle from open_query, which the registry does not know.
DAT_RETURN close_query(DAT_HANDLE handle);

}  // namespace dapple::udapl::functions
