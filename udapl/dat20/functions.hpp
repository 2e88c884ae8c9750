// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions behind the slots of the provider table, declared with the types of the table itself.
#pragma once

#include <dat2/dat_registry.h>
#include <dat2/udat.h>

#include <type_traits>

namespace dapple::dat20 {

template <class Pointer>
using Function = std::remove_pointer_t<Pointer>;

Function<DAT_IA_QUERY_FUNC> ia_query;
Function<DAT_IA_CLOSE_FUNC> ia_close;
Function<DAT_IA_HA_RELATED_FUNC> ia_ha_related;
Function<DAT_SET_CONSUMER_CONTEXT_FUNC> set_consumer_context;
Function<DAT_GET_CONSUMER_CONTEXT_FUNC> get_consumer_context;
Function<DAT_GET_HANDLE_TYPE_FUNC> get_handle_type;

Function<DAT_PZ_CREATE_FUNC> pz_create;
Function<DAT_PZ_QUERY_FUNC> pz_query;
Function<DAT_PZ_FREE_FUNC> pz_free;

Function<DAT_LMR_CREATE_FUNC> lmr_create;
Function<DAT_LMR_QUERY_FUNC> lmr_query;
Function<DAT_LMR_FREE_FUNC> lmr_free;
Function<DAT_LMR_SYNC_RDMA_READ_FUNC> lmr_sync_rdma_read;
Function<DAT_LMR_SYNC_RDMA_WRITE_FUNC> lmr_sync_rdma_write;

Function<DAT_EVD_CREATE_FUNC> evd_create;
Function<DAT_EVD_QUERY_FUNC> evd_query;
Function<DAT_EVD_WAIT_FUNC> evd_wait;
Function<DAT_EVD_DEQUEUE_FUNC> evd_dequeue;
Function<DAT_EVD_POST_SE_FUNC> evd_post_se;
Function<DAT_EVD_SET_UNWAITABLE_FUNC> evd_set_unwaitable;
Function<DAT_EVD_CLEAR_UNWAITABLE_FUNC> evd_clear_unwaitable;
Function<DAT_EVD_FREE_FUNC> evd_free;

Function<DAT_EP_CREATE_FUNC> ep_create;
Function<DAT_EP_QUERY_FUNC> ep_query;
Function<DAT_EP_GET_STATUS_FUNC> ep_get_status;
Function<DAT_EP_CONNECT_FUNC> ep_connect;
Function<DAT_EP_MODIFY_FUNC> ep_modify;
Function<DAT_EP_DUP_CONNECT_FUNC> ep_dup_connect;
Function<DAT_EP_COMMON_CONNECT_FUNC> ep_common_connect;
Function<DAT_EP_DISCONNECT_FUNC> ep_disconnect;
Function<DAT_EP_RESET_FUNC> ep_reset;
Function<DAT_EP_FREE_FUNC> ep_free;
Function<DAT_EP_POST_SEND_FUNC> ep_post_send;
Function<DAT_EP_POST_RECV_FUNC> ep_post_recv;
Function<DAT_EP_POST_RDMA_READ_FUNC> ep_post_rdma_read;
Function<DAT_EP_POST_RDMA_WRITE_FUNC> ep_post_rdma_write;

Function<DAT_HANDLE_EXTENDEDOP_FUNC> extended_op;

Function<DAT_PSP_CREATE_FUNC> psp_create;
Function<DAT_PSP_CREATE_ANY_FUNC> psp_create_any;
Function<DAT_PSP_QUERY_FUNC> psp_query;
Function<DAT_PSP_FREE_FUNC> psp_free;
Function<DAT_CR_QUERY_FUNC> cr_query;
Function<DAT_CR_ACCEPT_FUNC> cr_accept;
Function<DAT_CR_REJECT_FUNC> cr_reject;
Function<DAT_CR_HANDOFF_FUNC> cr_handoff;
Function<DAT_RSP_CREATE_FUNC> rsp_create;
Function<DAT_RSP_QUERY_FUNC> rsp_query;
Function<DAT_RSP_FREE_FUNC> rsp_free;
Function<DAT_CSP_CREATE_FUNC> csp_create;
Function<DAT_CSP_QUERY_FUNC> csp_query;
Function<DAT_CSP_FREE_FUNC> csp_free;

}  // namespace dapple::dat20
