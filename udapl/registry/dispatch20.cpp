// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The functions that only 2.0 has, or whose arguments differ from those in 1.2.
#include "udapl/registry/dispatch.hpp"

// clang-format off
IA(lmr_create, (DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* size, DAT_VADDR* address),
   ia, type, region, length, pz, priv, va_type, lmr, lmr_context, rmr_context, size, address)
OBJECT(PZ, rmr_create_for_ep, (DAT_PZ_HANDLE pz, DAT_RMR_HANDLE* rmr), pz, rmr)
OBJECT(RMR, rmr_bind, (DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context),
       rmr, lmr, triplet, priv, va_type, ep, cookie, flags, context)
OBJECT(EP, ep_common_connect, (DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data), ep, address, timeout, size, data)
OBJECT(EP, ep_post_send_with_invalidate, (DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context), ep, count, iov, cookie, flags, invalidate, context)
OBJECT(EP, ep_post_rdma_read_to_rmr, (DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET* local, DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags), ep, local, cookie, remote, flags)
IA(csp_create, (DAT_IA_HANDLE ia, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address, DAT_EVD_HANDLE evd, DAT_CSP_HANDLE* csp), ia, comm, address, evd, csp)
OBJECT(CSP, csp_query, (DAT_CSP_HANDLE csp, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM* param), csp, mask, param)
OBJECT(CSP, csp_free, (DAT_CSP_HANDLE csp), csp)
OBJECT(CR, cr_reject, (DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data), cr, size, data)
IA(cno_fd_create, (DAT_IA_HANDLE ia, DAT_FD* fd, DAT_CNO_HANDLE* cno), ia, fd, cno)
OBJECT(CNO, cno_trigger, (DAT_CNO_HANDLE cno, DAT_EVD_HANDLE* evd), cno, evd)
// clang-format on
