// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that this library interposes, as their callers would have found them.
#pragma once

namespace dapple::preload {

// The function to which the loader would have bound the caller's call without this library. The loader looks into the
// libraries that belong to the whole process, and then into those that the caller needs. A program that has loaded
// `soname` for its own plug-in only finds the function by other ways; then it is the function of that library. Null if
// there is none.
void* real_function(const char* soname, const char* name, const char* version, const void* caller);

}  // namespace dapple::preload
