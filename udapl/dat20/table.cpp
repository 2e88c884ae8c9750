// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider table of DAT 2.0, and the one that freed objects are left with.
#include <array>
#include <type_traits>

#include "udapl/dat20/convert.hpp"
#include "udapl/dat20/functions.hpp"
#include "udapl/dat20/provider.hpp"

namespace dapple::dat20 {
namespace {

// A function of any slot's type that only returns a status.
template <class Pointer>
struct Answer;

template <class... Arguments>
struct Answer<DAT_RETURN (*)(Arguments...)> {
  static DAT_RETURN not_implemented(Arguments...) { return error(DAT_NOT_IMPLEMENTED); }
  static DAT_RETURN invalid_handle(Arguments...) { return error(DAT_INVALID_HANDLE); }
};

// Calls visit(slot) for each of the 79 slots.
template <class Visit>
void for_each_slot(DAT_PROVIDER& t, Visit visit) {
  visit(t.ia_open_func), visit(t.ia_query_func), visit(t.ia_close_func), visit(t.set_consumer_context_func);
  visit(t.get_consumer_context_func), visit(t.get_handle_type_func), visit(t.cno_create_func);
  visit(t.cno_modify_agent_func), visit(t.cno_query_func), visit(t.cno_free_func), visit(t.cno_wait_func);
  visit(t.cr_query_func), visit(t.cr_accept_func), visit(t.cr_reject_func), visit(t.cr_handoff_func);
  visit(t.evd_create_func), visit(t.evd_query_func), visit(t.evd_modify_cno_func), visit(t.evd_enable_func);
  visit(t.evd_disable_func), visit(t.evd_wait_func), visit(t.evd_resize_func), visit(t.evd_post_se_func);
  visit(t.evd_dequeue_func), visit(t.evd_free_func), visit(t.ep_create_func), visit(t.ep_query_func);
  visit(t.ep_modify_func), visit(t.ep_connect_func), visit(t.ep_dup_connect_func), visit(t.ep_disconnect_func);
  visit(t.ep_post_send_func), visit(t.ep_post_recv_func), visit(t.ep_post_rdma_read_func);
  visit(t.ep_post_rdma_write_func), visit(t.ep_get_status_func), visit(t.ep_free_func), visit(t.lmr_create_func);
  visit(t.lmr_query_func), visit(t.lmr_free_func), visit(t.rmr_create_func), visit(t.rmr_query_func);
  visit(t.rmr_bind_func), visit(t.rmr_free_func), visit(t.psp_create_func), visit(t.psp_query_func);
  visit(t.psp_free_func), visit(t.rsp_create_func), visit(t.rsp_query_func), visit(t.rsp_free_func);
  visit(t.pz_create_func), visit(t.pz_query_func), visit(t.pz_free_func), visit(t.psp_create_any_func);
  visit(t.ep_reset_func), visit(t.evd_set_unwaitable_func), visit(t.evd_clear_unwaitable_func);
  visit(t.lmr_sync_rdma_read_func), visit(t.lmr_sync_rdma_write_func), visit(t.ep_create_with_srq_func);
  visit(t.ep_recv_query_func), visit(t.ep_set_watermark_func), visit(t.srq_create_func), visit(t.srq_free_func);
  visit(t.srq_post_recv_func), visit(t.srq_query_func), visit(t.srq_resize_func), visit(t.srq_set_lw_func);
  visit(t.csp_create_func), visit(t.csp_query_func), visit(t.csp_free_func), visit(t.ep_common_connect_func);
  visit(t.rmr_create_for_ep_func), visit(t.ep_post_send_with_invalidate_func);
  visit(t.ep_post_rdma_read_to_rmr_func), visit(t.cno_fd_create_func), visit(t.cno_trigger_func);
  visit(t.ia_ha_related_func), visit(t.handle_extendedop_func);
}

constexpr size_t kSlots = 79;
static_assert(sizeof(DAT_PROVIDER) == (kSlots + 2) * sizeof(void*));

}  // namespace

const DAT_PROVIDER& dead_table() {
  static const DAT_PROVIDER table = [] {
    DAT_PROVIDER dead{};
    dead.device_name = "freed";
    for_each_slot(dead, [](auto& slot) { slot = Answer<std::remove_reference_t<decltype(slot)>>::invalid_handle; });
    return dead;
  }();
  return table;
}

DAT_PROVIDER make_table(const char* name, DAT_IA_OPEN_FUNC ia_open) {
  DAT_PROVIDER t{};
  for_each_slot(t, [](auto& slot) { slot = Answer<std::remove_reference_t<decltype(slot)>>::not_implemented; });
  t.device_name = name;
  t.ia_open_func = ia_open;
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
  t.evd_create_func = evd_create;
  t.evd_query_func = evd_query;
  t.evd_wait_func = evd_wait;
  t.evd_dequeue_func = evd_dequeue;
  t.evd_post_se_func = evd_post_se;
  t.evd_set_unwaitable_func = evd_set_unwaitable;
  t.evd_clear_unwaitable_func = evd_clear_unwaitable;
  t.evd_free_func = evd_free;
  t.ep_create_func = ep_create;
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
  t.handle_extendedop_func = extended_op;
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
  t.csp_create_func = csp_create;
  t.csp_query_func = csp_query;
  t.csp_free_func = csp_free;
  t.ep_modify_func = ep_modify;
  t.ep_dup_connect_func = ep_dup_connect;
  t.ep_common_connect_func = ep_common_connect;
  t.ia_ha_related_func = ia_ha_related;
  return t;
}

}  // namespace dapple::dat20
