// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/face/table.hpp"

#include "udapl/face/functions.hpp"
#include "udapl/face/version.hpp"

namespace dapple::face {

void fill_common_slots(DAT_PROVIDER& t, const char* name) {
  t.device_name = name;
  t.extension = reinterpret_cast<DAT_PVOID>(kTableMark);  // NOLINT(performance-no-int-to-ptr): it is a number
  t.ia_query_func = ia_query;
  t.ia_close_func = ia_close;
  t.set_consumer_context_func = set_consumer_context;
  t.get_consumer_context_func = get_consumer_context;
  t.get_handle_type_func = get_handle_type;
  t.pz_create_func = pz_create;
  t.pz_query_func = pz_query;
  t.pz_free_func = pz_free;
  t.lmr_create_func = lmr_create;
  t.lmr_query_func = lmr_query;
  t.lmr_free_func = lmr_free;
  t.lmr_sync_rdma_read_func = lmr_sync_rdma_read;
  t.lmr_sync_rdma_write_func = lmr_sync_rdma_write;
  t.rmr_create_func = rmr_create;
  t.rmr_query_func = rmr_query;
  t.rmr_bind_func = rmr_bind;
  t.rmr_free_func = rmr_free;
  t.evd_create_func = evd_create;
  t.evd_query_func = evd_query;
  t.evd_wait_func = evd_wait;
  t.evd_dequeue_func = evd_dequeue;
  t.evd_post_se_func = evd_post_se;
  t.evd_set_unwaitable_func = evd_set_unwaitable;
  t.evd_clear_unwaitable_func = evd_clear_unwaitable;
  t.evd_free_func = evd_free;
  t.evd_resize_func = evd_resize;
  t.evd_modify_cno_func = evd_modify_cno;
  t.evd_enable_func = evd_enable;
  t.evd_disable_func = evd_disable;
  t.cno_create_func = cno_create;
  t.cno_modify_agent_func = cno_modify_agent;
  t.cno_query_func = cno_query;
  t.cno_wait_func = cno_wait;
  t.cno_free_func = cno_free;
  t.ep_create_func = ep_create;
  t.ep_create_with_srq_func = ep_create_with_srq;
  t.ep_recv_query_func = ep_recv_query;
  t.ep_set_watermark_func = ep_set_watermark;
  t.srq_create_func = srq_create;
  t.srq_query_func = srq_query;
  t.srq_resize_func = srq_resize;
  t.srq_set_lw_func = srq_set_lw;
  t.srq_post_recv_func = srq_post_recv;
  t.srq_free_func = srq_free;
  t.ep_query_func = ep_query;
  t.ep_get_status_func = ep_get_status;
  t.ep_connect_func = ep_connect;
  t.ep_disconnect_func = ep_disconnect;
  t.ep_reset_func = ep_reset;
  t.ep_free_func = ep_free;
  t.ep_post_send_func = ep_post_send;
  t.ep_post_recv_func = ep_post_recv;
  t.ep_post_rdma_read_func = ep_post_rdma_read;
  t.ep_post_rdma_write_func = ep_post_rdma_write;
  t.psp_create_func = psp_create;
  t.psp_create_any_func = psp_create_any;
  t.psp_query_func = psp_query;
  t.psp_free_func = psp_free;
  t.cr_query_func = cr_query;
  t.cr_accept_func = cr_accept;
  t.cr_reject_func = cr_reject;
  t.cr_handoff_func = cr_handoff;
  t.rsp_create_func = rsp_create;
  t.rsp_query_func = rsp_query;
  t.rsp_free_func = rsp_free;
  t.ep_modify_func = ep_modify;
  t.ep_dup_connect_func = ep_dup_connect;
}

}  // namespace dapple::face
