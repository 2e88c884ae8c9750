// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <dat2/dat_dapple_extensions.h>
#include <dat2/dat_ib_extensions.h>

#include "udapl/functions/functions.hpp"
#include "udapl/functions/lmr.hpp"

namespace dapple::udapl::functions {

static_assert(DAT_IB_MEM_PRIV_REMOTE_ATOMIC == int{kRemoteAtomic} &&
              DAT_DAPPLE_MEM_PRIV_NONCOHERENT == int{kNoncoherent} &&
              DAT_DAPPLE_MEM_PRIV_PERSISTENT == int{kPersistent});

DAT_RETURN lmr_create(Ia& ia, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                      DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type,
                      DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context,
                      DAT_VLEN* registered_size, DAT_VADDR* registered_address) {
  if (mem_type < DAT_MEM_TYPE_VIRTUAL || mem_type > DAT_MEM_TYPE_SHARED_VIRTUAL) {
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  if (!lmr_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
  LmrAttr request;
  request.type = static_cast<MemType>(mem_type);
  request.length = length;
  request.privileges = privileges;
  request.zero_based = va_type == DAT_VA_TYPE_ZB;
  return create_lmr(ia, pz_handle, region, request,
                    {lmr_handle, lmr_context, rmr_context, registered_size, registered_address});
}

}  // namespace dapple::udapl::functions
