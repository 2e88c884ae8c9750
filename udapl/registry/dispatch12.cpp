// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The functions whose arguments in 1.2 differ from those in 2.0.
#include "udapl/registry/dispatch.hpp"

// clang-format off
IA(lmr_create, (DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* lmr_context, DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* size, DAT_VADDR* address),
   ia, type, region, length, pz, priv, lmr, lmr_context, rmr_context, size, address)
OBJECT(RMR, rmr_bind, (DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET* triplet, DAT_MEM_PRIV_FLAGS priv, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context), rmr, triplet, priv, ep, cookie, flags, context)
OBJECT(CR, cr_reject, (DAT_CR_HANDLE cr), cr)
// clang-format on
