// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The plug-in's functions in a program with a sanitizer. The sanitizer learns when the plug-in is at work, and which
// memory the plug-in has filled in for the program. Other programs have the plain functions.
#pragma once

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft {

// The same operations for a program with a sanitizer. Only the first call's argument counts.
const Operations& watched_operations(const Operations& operations);

}  // namespace dapple::soft
