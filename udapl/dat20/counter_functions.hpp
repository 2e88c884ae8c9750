// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The extensions that read the counters of an IA or an EP.
#pragma once

#include <dat2/udat.h>

#include <cstdarg>

namespace dapple::dat20 {

// args as the macros of dat_ib_extensions.h pass them after the operation. An EVD has no counters: NOT_IMPLEMENTED.
DAT_RETURN query_counters(DAT_HANDLE handle, va_list args);
// To stdout, a line for each that is not 0, or the one that was asked for.
DAT_RETURN print_counters(DAT_HANDLE handle, va_list args);

}  // namespace dapple::dat20
