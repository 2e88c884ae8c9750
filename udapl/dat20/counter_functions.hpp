// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The extensions that read the counters of an IA, an EP or an EVD.
#pragma once

#include <dat2/udat.h>

#include <cstdarg>

namespace dapple::face {

// args as the macros of dat_ib_extensions.h pass them after the operation.
DAT_RETURN query_counters(DAT_HANDLE handle, va_list args);
// To stdout, a line for each that is not 0, or the one that was asked for.
DAT_RETURN print_counters(DAT_HANDLE handle, va_list args);
// Of an IA: the counters that the kernel and the device keep of its port.
DAT_RETURN start_counters(DAT_HANDLE handle, va_list args);
DAT_RETURN stop_counters(DAT_HANDLE handle, va_list args);

}  // namespace dapple::face
