// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The C library's dlsym() and dlvsym(), which this library interposes.
#pragma once

namespace dapple::preload {

using Dlsym = void* (*)(void* handle, const char* name);
using Dlvsym = void* (*)(void* handle, const char* name, const char* version);

// Found in the C library's own table of symbols at the first call: a sanitizer calls dlsym() before any constructor has
// run, and before its own functions may be called. From any thread.
Dlsym real_dlsym();
Dlvsym real_dlvsym();

}  // namespace dapple::preload
