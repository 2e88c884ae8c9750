// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The extensions that return an IA's attributes without opening the IA for use.
#pragma once

#include <dat2/udat.h>

#include <cstdarg>

namespace dapple::udapl::functions {

// args holds the arguments that the dat_ib_open_query macro passes after the name. The attributes' pointers are valid
// until close_query.
DAT_RETURN open_query(DAT_NAME_PTR name, va_list args);
// Closes a handle from open_query, which the registry does not know.
DAT_RETURN close_query(DAT_HANDLE handle);

}  // namespace dapple::udapl::functions
