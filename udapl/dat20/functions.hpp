// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions behind the slots that only 2.0 has.
#pragma once

#include "udapl/face/functions.hpp"

namespace dapple::face {

Function<DAT_IA_HA_RELATED_FUNC> ia_ha_related;
Function<DAT_RMR_CREATE_FOR_EP_FUNC> rmr_create_for_ep;
Function<DAT_EP_POST_SEND_WITH_INVALIDATE_FUNC> ep_post_send_with_invalidate;
Function<DAT_EP_POST_RDMA_READ_TO_RMR_FUNC> ep_post_rdma_read_to_rmr;
Function<DAT_CNO_FD_CREATE_FUNC> cno_fd_create;
Function<DAT_CNO_TRIGGER_FUNC> cno_trigger;
Function<DAT_EP_COMMON_CONNECT_FUNC> ep_common_connect;
Function<DAT_HANDLE_EXTENDEDOP_FUNC> extended_op;
Function<DAT_CSP_CREATE_FUNC> csp_create;
Function<DAT_CSP_QUERY_FUNC> csp_query;
Function<DAT_CSP_FREE_FUNC> csp_free;

}  // namespace dapple::face
