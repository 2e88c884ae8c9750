// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions behind the slots of the provider table, declared with the types of the table itself.
#pragma once

#include <type_traits>

#include "udapl/face/dat.hpp"

namespace dapple::face {

template <class Pointer>
using Function = std::remove_pointer_t<Pointer>;

Function<DAT_IA_QUERY_FUNC> ia_query;
Function<DAT_IA_CLOSE_FUNC> ia_close;
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

Function<DAT_RMR_CREATE_FUNC> rmr_create;
Function<DAT_RMR_QUERY_FUNC> rmr_query;
Function<DAT_RMR_BIND_FUNC> rmr_bind;
Function<DAT_RMR_FREE_FUNC> rmr_free;

Function<DAT_EVD_CREATE_FUNC> evd_create;
Function<DAT_EVD_QUERY_FUNC> evd_query;
Function<DAT_EVD_WAIT_FUNC> evd_wait;
Function<DAT_EVD_DEQUEUE_FUNC> evd_dequeue;
Function<DAT_EVD_POST_SE_FUNC> evd_post_se;
Function<DAT_EVD_SET_UNWAITABLE_FUNC> evd_set_unwaitable;
Function<DAT_EVD_CLEAR_UNWAITABLE_FUNC> evd_clear_unwaitable;
Function<DAT_EVD_FREE_FUNC> evd_free;

Function<DAT_EVD_RESIZE_FUNC> evd_resize;
Function<DAT_EVD_MODIFY_CNO_FUNC> evd_modify_cno;
Function<DAT_EVD_ENABLE_FUNC> evd_enable;
Function<DAT_EVD_DISABLE_FUNC> evd_disable;

Function<DAT_CNO_CREATE_FUNC> cno_create;
Function<DAT_CNO_MODIFY_AGENT_FUNC> cno_modify_agent;
Function<DAT_CNO_QUERY_FUNC> cno_query;
Function<DAT_CNO_WAIT_FUNC> cno_wait;
Function<DAT_CNO_FREE_FUNC> cno_free;

Function<DAT_EP_CREATE_FUNC> ep_create;
Function<DAT_EP_CREATE_WITH_SRQ_FUNC> ep_create_with_srq;
Function<DAT_EP_RECV_QUERY_FUNC> ep_recv_query;
Function<DAT_EP_SET_WATERMARK_FUNC> ep_set_watermark;

Function<DAT_SRQ_CREATE_FUNC> srq_create;
Function<DAT_SRQ_QUERY_FUNC> srq_query;
Function<DAT_SRQ_RESIZE_FUNC> srq_resize;
Function<DAT_SRQ_SET_LW_FUNC> srq_set_lw;
Function<DAT_SRQ_POST_RECV_FUNC> srq_post_recv;
Function<DAT_SRQ_FREE_FUNC> srq_free;

Function<DAT_EP_QUERY_FUNC> ep_query;
Function<DAT_EP_GET_STATUS_FUNC> ep_get_status;
Function<DAT_EP_CONNECT_FUNC> ep_connect;
Function<DAT_EP_MODIFY_FUNC> ep_modify;
Function<DAT_EP_DUP_CONNECT_FUNC> ep_dup_connect;
Function<DAT_EP_DISCONNECT_FUNC> ep_disconnect;
Function<DAT_EP_RESET_FUNC> ep_reset;
Function<DAT_EP_FREE_FUNC> ep_free;
Function<DAT_EP_POST_SEND_FUNC> ep_post_send;
Function<DAT_EP_POST_RECV_FUNC> ep_post_recv;
Function<DAT_EP_POST_RDMA_READ_FUNC> ep_post_rdma_read;
Function<DAT_EP_POST_RDMA_WRITE_FUNC> ep_post_rdma_write;

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

}  // namespace dapple::face
