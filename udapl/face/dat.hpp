// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The API that a face speaks. What lies in this folder is compiled once for each: DAPPLE_DAT_MAJOR says for which, and
// a library has one.
#pragma once

#if DAPPLE_DAT_MAJOR == 1
#include <dat/dat_registry.h>
#include <dat/udat.h>
#else
#include <dat2/dat_registry.h>
#include <dat2/udat.h>
#endif
