// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that have other parameters in 2.0.
#include "udapl/functions/functions.hpp"
#include "udapl/functions/lmr.hpp"

namespace dapple::udapl::functions {

DAT_RETURN cno_query(Cno& cno, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  if (auto status = check_query(mask, DAT_CNO_FIELD_ALL, param)) return status;
  const WaitAgent agent = cno.notifier()->agent();
  param->ia_handle = consumer_handle(cno.ia());
  param->agent = {agent.instance_data, agent.function};
  return DAT_SUCCESS;
}

DAT_RETURN cr_reject(Cr& cr) {
  return controlled([&] { return cr.reject({}); });
}

static_assert(DAT_MEM_TYPE_SO_VIRTUAL == static_cast<int>(MemType::kSoVirtual));

DAT_RETURN lmr_create(Ia& ia, DAT_MEM_TYPE mem_type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
                      DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges, DAT_LMR_HANDLE* lmr_handle,
                      DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                      DAT_VADDR* registered_address) {
  if (mem_type < DAT_MEM_TYPE_VIRTUAL || mem_type > DAT_MEM_TYPE_SO_VIRTUAL) {
    return wrong_argument(DAT_INVALID_ARG2, "no such kind of memory is supported");
  }
  // 0x40 means something to the core that 1.2 has no name for.
  if (privileges & ~(DAT_MEM_PRIV_ALL_FLAG | DAT_MEM_PRIV_RO_DISABLE_FLAG)) {
    return wrong_argument(DAT_INVALID_ARG6, "it has unknown flags");
  }
  if (!lmr_handle) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  LmrAttr request;
  request.type = static_cast<MemType>(mem_type);
  request.length = length;
  request.privileges = privileges & DAT_MEM_PRIV_ALL_FLAG;
  request.disables_reordering = privileges & DAT_MEM_PRIV_RO_DISABLE_FLAG;
  // dat_lmr_create(3DAT): a consumer that did not open with RO_AWARE_ gets all regions strongly ordered.
  request.relaxed_ordering =
      ia.relaxed_ordering() && mem_type != DAT_MEM_TYPE_SO_VIRTUAL && !request.disables_reordering;
  return create_lmr(ia, pz_handle, region, request,
                    {lmr_handle, lmr_context, rmr_context, registered_size, registered_address});
}

// The triplet's context identifies the region.
DAT_RETURN rmr_bind(Rmr& rmr, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep_handle,
                    DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* rmr_context) {
  if (!triplet) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  // 0x40 means something to the core that 1.2 has no name for.
  if (privileges & ~DAT_MEM_PRIV_ALL_FLAG) return wrong_argument(DAT_INVALID_ARG3, "it has unknown flags");
  auto* ep = find_object<Ep>(ep_handle, rmr.ia());
  if (!ep) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  const bool unbinds = triplet->segment_length == 0;
  Lmr* lmr = nullptr;
  if (!unbinds) {
    const auto guard = rmr.ia().lmrs().guard();
    lmr = rmr.ia().lmrs().find(triplet->lmr_context);
    if (!lmr) return wrong_argument(DAT_INVALID_ARG2, "its lmr_context is that of no LMR");
  }
  if (!unbinds && !rmr_context) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
  const Binding target{.lmr = lmr,
                       .lmr_context = triplet->lmr_context,
                       .address = triplet->virtual_address,
                       .length = triplet->segment_length,
                       .privileges = static_cast<uint32_t>(privileges)};
  const auto context = rmr.bind(*ep, {target, user_cookie.as_64, static_cast<uint32_t>(flags)});
  if (!context) {
    return to_dat(context.error(), {{Subtype::kSegments, DAT_INVALID_ARG2},
                                    {Subtype::kPrivileges, DAT_INVALID_ARG3},
                                    {Subtype::kFlags, DAT_INVALID_ARG6}});
  }
  if (rmr_context) *rmr_context = *context;
  return DAT_SUCCESS;
}

}  // namespace dapple::udapl::functions
