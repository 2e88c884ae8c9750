// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/core/memory/rmr.hpp"
#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// for_ep: makes a window that endpoints' binds use and peers may invalidate.
DAT_RETURN create_rmr(Pz& pz, DAT_RMR_HANDLE* rmr_handle, bool for_ep);

}  // namespace dapple::udapl::functions
