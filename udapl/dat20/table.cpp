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
  template <DAT_RETURN_SUBTYPE kSubtype>
  static DAT_RETURN invalid_handle(Arguments...) {
    return error(DAT_INVALID_HANDLE, kSubtype);
  }
};

// Calls visit.operator()<subtype>(slot) for each of the 79 slots; the subtype is of a bad handle that the slot's
// function is called with.
template <class Visit>
void for_each_slot(DAT_PROVIDER& t, Visit visit) {
  const auto each = [&]<DAT_RETURN_SUBTYPE kSubtype>(auto&... slots) {
    (visit.template operator()<kSubtype>(slots), ...);
  };
  each.template operator()<DAT_INVALID_HANDLE_IA>(
      t.ia_open_func, t.ia_query_func, t.ia_close_func, t.ia_ha_related_func, t.pz_create_func, t.lmr_create_func,
      t.lmr_sync_rdma_read_func, t.lmr_sync_rdma_write_func, t.srq_create_func, t.evd_create_func, t.cno_create_func,
      t.cno_fd_create_func, t.ep_create_func, t.ep_create_with_srq_func, t.psp_create_func, t.psp_create_any_func,
      t.rsp_create_func, t.csp_create_func);
  each.template operator()<DAT_INVALID_HANDLE1>(t.set_consumer_context_func, t.get_consumer_context_func,
                                                t.get_handle_type_func, t.handle_extendedop_func);
  each.template operator()<DAT_INVALID_HANDLE_PZ>(t.pz_query_func, t.pz_free_func, t.rmr_create_func,
                                                  t.rmr_create_for_ep_func);
  each.template operator()<DAT_INVALID_HANDLE_LMR>(t.lmr_query_func, t.lmr_free_func);
  each.template operator()<DAT_INVALID_HANDLE_RMR>(t.rmr_query_func, t.rmr_bind_func, t.rmr_free_func);
  each.template operator()<DAT_INVALID_HANDLE_SRQ>(t.srq_query_func, t.srq_free_func, t.srq_post_recv_func,
                                                   t.srq_resize_func, t.srq_set_lw_func);
  each.template operator()<DAT_INVALID_HANDLE_EVD_REQUEST>(t.evd_query_func, t.evd_modify_cno_func, t.evd_enable_func,
                                                           t.evd_disable_func, t.evd_wait_func, t.evd_resize_func,
                                                           t.evd_post_se_func, t.evd_dequeue_func, t.evd_free_func,
                                                           t.evd_set_unwaitable_func, t.evd_clear_unwaitable_func);
  each.template operator()<DAT_INVALID_HANDLE_CNO>(t.cno_modify_agent_func, t.cno_query_func, t.cno_free_func,
                                                   t.cno_wait_func, t.cno_trigger_func);
  each.template operator()<DAT_INVALID_HANDLE_EP>(
      t.ep_query_func, t.ep_modify_func, t.ep_connect_func, t.ep_dup_connect_func, t.ep_common_connect_func,
      t.ep_disconnect_func, t.ep_post_send_func, t.ep_post_send_with_invalidate_func, t.ep_post_recv_func,
      t.ep_post_rdma_read_func, t.ep_post_rdma_read_to_rmr_func, t.ep_post_rdma_write_func, t.ep_get_status_func,
      t.ep_recv_query_func, t.ep_set_watermark_func, t.ep_reset_func, t.ep_free_func);
  each.template operator()<DAT_INVALID_HANDLE_PSP>(t.psp_query_func, t.psp_free_func);
  each.template operator()<DAT_INVALID_HANDLE_RSP>(t.rsp_query_func, t.rsp_free_func);
  each.template operator()<DAT_INVALID_HANDLE_CSP>(t.csp_query_func, t.csp_free_func);
  each.template operator()<DAT_INVALID_HANDLE_CR>(t.cr_query_func, t.cr_accept_func, t.cr_reject_func,
                                                  t.cr_handoff_func);
}

constexpr size_t kSlots = 79;
static_assert(sizeof(DAT_PROVIDER) == (kSlots + 2) * sizeof(void*));

}  // namespace

const DAT_PROVIDER& dead_table() {
  static const DAT_PROVIDER table = [] {
    DAT_PROVIDER dead{};
    dead.device_name = "freed";
    for_each_slot(dead, []<DAT_RETURN_SUBTYPE kSubtype>(auto& slot) {
      slot = Answer<std::remove_reference_t<decltype(slot)>>::template invalid_handle<kSubtype>;
    });
    return dead;
  }();
  return table;
}

DAT_PROVIDER make_table(const char* name, DAT_IA_OPEN_FUNC ia_open) {
  DAT_PROVIDER t{};
  for_each_slot(t, []<DAT_RETURN_SUBTYPE>(auto& slot) {
    slot = Answer<std::remove_reference_t<decltype(slot)>>::not_implemented;
  });
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
  t.rmr_create_func = rmr_create;
  t.rmr_create_for_ep_func = rmr_create_for_ep;
  t.rmr_query_func = rmr_query;
  t.rmr_bind_func = rmr_bind;
  t.rmr_free_func = rmr_free;
  t.ep_post_send_with_invalidate_func = ep_post_send_with_invalidate;
  t.ep_post_rdma_read_to_rmr_func = ep_post_rdma_read_to_rmr;
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
  t.cno_fd_create_func = cno_fd_create;
  t.cno_modify_agent_func = cno_modify_agent;
  t.cno_query_func = cno_query;
  t.cno_wait_func = cno_wait;
  t.cno_trigger_func = cno_trigger;
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
