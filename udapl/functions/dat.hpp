// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The API of one version. The files in this folder are compiled once for each version: DAPPLE_DAT_MAJOR selects it, and
// a library has one version.
#pragma once

#if DAPPLE_DAT_MAJOR == 1
#include <dat/dat_registry.h>
#include <dat/udat.h>
#else
#include <dat2/dat_registry.h>
#include <dat2/udat.h>
#endif
