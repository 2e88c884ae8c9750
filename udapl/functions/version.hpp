// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Common names for parts that the versions name differently, or that only one version has.
#pragma once

#include "udapl/functions/dat.hpp"

#if DAPPLE_DAT_MAJOR == 1
#include "udapl/functions/version12.hpp"
#else
#include "udapl/functions/version20.hpp"
#endif
