// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The extensions that tell an IA's attributes without the IA being opened for use.
#pragma once

#include <dat2/udat.h>

#include <cstdarg>

namespace dapple::face {

// args as the dat_ib_open_query macro passes them after the name. The attributes' pointers are valid until close_query.
DAT_RETURN open_query(DAT_NAME_PTR name, va_list args);
// For a handle from open_query, which is not the registry's.
DAT_RETURN close_query(DAT_HANDLE handle);

}  // namespace dapple::face
