// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// The outputs of dat_lmr_create. All but handle may be null.
struct LmrOutputs {
  DAT_LMR_HANDLE* handle;
  DAT_LMR_CONTEXT* lmr_context;
  DAT_RMR_CONTEXT* rmr_context;
  DAT_VLEN* size;
  DAT_VADDR* address;
};

// Registers the region that the description and the rest of the request name. The type is a known one.
DAT_RETURN create_lmr(Ia& ia, DAT_PZ_HANDLE pz_handle, const DAT_REGION_DESCRIPTION& region, LmrAttr request,
                      const LmrOutputs& out);

}  // namespace dapple::udapl::functions
