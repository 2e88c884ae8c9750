// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The window functions that 2.0 adds: windows that only one endpoint serves, zero-based windows, and invalidation by
// peers.
#include "udapl/functions/functions.hpp"
#include "udapl/functions/segments.hpp"

namespace dapple::udapl::functions {

DAT_RETURN rmr_create_for_ep(Pz& pz, DAT_RMR_HANDLE* rmr_handle) {
  if (!rmr_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return controlled([&] { return store(Rmr::create(pz.ia(), pz, true), rmr_handle); });
}

DAT_RETURN rmr_bind(Rmr& rmr, DAT_LMR_HANDLE lmr_handle, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS privileges,
                    DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
                    DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* rmr_context) {
  if (!triplet) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const bool unbinds = triplet->segment_length == 0;
  auto* lmr = unbinds ? nullptr : find_object<Lmr>(lmr_handle, rmr.ia());
  if (!unbinds && !lmr) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
  if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
  auto* ep = find_object<Ep>(ep_handle, rmr.ia());
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  if (!unbinds && !rmr_context) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG9);
  const Binding target{.lmr = lmr,
                       .lmr_context = triplet->lmr_context,
                       .address = triplet->virtual_address,
                       .length = triplet->segment_length,
                       .privileges = static_cast<uint32_t>(privileges),
                       .zero_based = va_type == DAT_VA_TYPE_ZB};
  const auto context = rmr.bind(*ep, {target, user_cookie.as_64, static_cast<uint32_t>(flags)});
  if (!context) {
    return to_dat(context.error(), {{Subtype::kSegments, DAT_INVALID_ARG3},
                                    {Subtype::kPrivileges, DAT_INVALID_ARG4},
                                    {Subtype::kFlags, DAT_INVALID_ARG8}});
  }
  if (rmr_context) *rmr_context = *context;
  return DAT_SUCCESS;
}

DAT_RETURN ep_post_send_with_invalidate(Ep& ep, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                        DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate,
                                        DAT_RMR_CONTEXT rmr_context) {
  const RequestSegments segments(count, iov);
  if (auto status = segments.status()) return status;
  if (!invalidate) return to_dat_of_post(ep.post_send(segments.span(), cookie.as_64, flags), DAT_INVALID_ARG5);
  return to_dat_of_post(ep.post_send_with_invalidate(segments.span(), cookie.as_64, rmr_context, flags),
                        DAT_INVALID_ARG5);
}

DAT_RETURN ep_post_rdma_read_to_rmr(Ep& ep, const DAT_RMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                                    const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
  if (!local) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!remote) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  return to_dat(ep.post_rdma_read_to_rmr(to_remote(*local), cookie.as_64, to_remote(*remote), flags),
                {{Subtype::kSegmentCount, DAT_INVALID_ARG2},
                 {Subtype::kSegments, DAT_INVALID_ARG2},
                 {Subtype::kFlags, DAT_INVALID_ARG5}});
}

}  // namespace dapple::udapl::functions
