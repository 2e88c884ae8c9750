// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The differences between the registries of the two versions, under one name for both.
#pragma once

#include "udapl/registry/common/dat.hpp"

#if DAPPLE_DAT_MAJOR == 1
#include "udapl/registry/version12.hpp"
#else
#include "udapl/registry/version20.hpp"
#endif
