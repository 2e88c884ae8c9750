// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"
#include "udapl/functions/lmr.hpp"

namespace dapple::udapl::functions {

static_assert(DAT_MEM_TYPE_SO_VIRTUAL == static_cast<int>(MemType::kSoVirtual));

DAT_RETURN lmr_create(Ia& ia, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                      DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE* lmr_handle,
                      DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                      DAT_VADDR* registered_address) {
  if (mem_type < DAT_MEM_TYPE_VIRTUAL || mem_type > DAT_MEM_TYPE_SO_VIRTUAL) {
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  // 0x40 means something to the core that 1.2 has no name for.
  if (privileges & ~(DAT_MEM_PRIV_ALL_FLAG | DAT_MEM_PRIV_RO_DISABLE_FLAG)) {
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  }
  if (!lmr_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  LmrRequest request;
  request.type = static_cast<MemType>(mem_type);
  request.length = length;
  request.privileges = privileges & DAT_MEM_PRIV_ALL_FLAG;
  // dat_lmr_create(3DAT): a consumer that did not open with RO_AWARE_ gets all regions strongly ordered.
  request.relaxed_ordering =
      ia.relaxed_ordering() && mem_type != DAT_MEM_TYPE_SO_VIRTUAL && !(privileges & DAT_MEM_PRIV_RO_DISABLE_FLAG);
  return create_lmr(ia, pz_handle, region, request,
                    {lmr_handle, lmr_context, rmr_context, registered_size, registered_address});
}

}  // namespace dapple::udapl::functions
