// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/functions.hpp"
#include "udapl/functions/rmr.hpp"

namespace dapple::udapl::functions {

// The triplet's context identifies the region.
DAT_RETURN rmr_bind(Rmr& rmr, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep_handle,
                    DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* rmr_context) {
  if (!triplet) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  // 0x40 means something to the core that 1.2 has no name for.
  if (privileges & ~DAT_MEM_PRIV_ALL_FLAG) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  auto* ep = find_object<Ep>(ep_handle, rmr.ia());
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const bool unbinds = triplet->segment_length == 0;
  Lmr* lmr = nullptr;
  if (!unbinds) {
    const auto guard = rmr.ia().lmrs().guard();
    lmr = rmr.ia().lmrs().find(triplet->lmr_context);
    if (!lmr) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  if (!unbinds && !rmr_context) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  const BindRequest request{lmr,
                            triplet->virtual_address,
                            triplet->segment_length,
                            triplet->lmr_context,
                            static_cast<uint32_t>(privileges),
                            false,
                            user_cookie.as_64,
                            static_cast<uint32_t>(flags)};
  const auto context = rmr.bind(*ep, request);
  if (!context) {
    return to_dat(context.error(), {{Subtype::kSegments, DAT_INVALID_ARG2},
                                    {Subtype::kPrivileges, DAT_INVALID_ARG3},
                                    {Subtype::kFlags, DAT_INVALID_ARG6}});
  }
  if (rmr_context) *rmr_context = *context;
  return DAT_SUCCESS;
}

}  // namespace dapple::udapl::functions
