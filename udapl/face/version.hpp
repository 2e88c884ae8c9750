// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What the versions have under different names, or only one of them has, under one name for both.
#pragma once

#include "udapl/face/dat.hpp"

#if DAPPLE_DAT_MAJOR == 1
#include "udapl/face/version12.hpp"
#else
#include "udapl/face/version20.hpp"
#endif
