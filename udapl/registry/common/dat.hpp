// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The API that a registry serves. Most of this folder is compiled once for each version, which DAPPLE_DAT_MAJOR
// selects.
#pragma once

#if DAPPLE_DAT_MAJOR == 1
#include <dat/dat_registry.h>
#include <dat/udat.h>
#else
#include <dat2/dat_registry.h>
#include <dat2/udat.h>
#endif
