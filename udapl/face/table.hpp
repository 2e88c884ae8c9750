// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The entries of the two tables of functions.
#pragma once

#include <type_traits>

#include "udapl/face/convert.hpp"
#include "udapl/face/dat.hpp"

namespace dapple::face {

// A function of any slot's type that only returns a status.
template <class Pointer>
struct Answer;

template <class... Arguments>
struct Answer<DAT_RETURN (*)(Arguments...)> {
  static DAT_RETURN not_implemented(Arguments...) { return error(DAT_NOT_IMPLEMENTED); }
  static DAT_RETURN invalid_state(Arguments...) { return error(DAT_INVALID_STATE); }
  template <DAT_RETURN_SUBTYPE kSubtype>
  static DAT_RETURN invalid_handle(Arguments...) {
    return error(DAT_INVALID_HANDLE, kSubtype);
  }
};

// For visitors of slots. They are called as visit.operator()<subtype>(slot); subtype is the one for a bad handle in a
// call of that slot.
template <DAT_RETURN_SUBTYPE kSubtype, class Visit, class... Slots>
void visit_slots(Visit& visit, Slots&... slots) {
  (visit.template operator()<kSubtype>(slots), ...);
}

struct RefuseHandle {
  template <DAT_RETURN_SUBTYPE kSubtype, class Slot>
  void operator()(Slot& slot) const {
    slot = Answer<Slot>::template invalid_handle<kSubtype>;
  }
};

struct NotImplemented {
  template <DAT_RETURN_SUBTYPE, class Slot>
  void operator()(Slot& slot) const {
    slot = Answer<Slot>::not_implemented;
  }
};

struct RefuseEverything {
  template <DAT_RETURN_SUBTYPE, class Slot>
  void operator()(Slot& slot) const {
    slot = Answer<Slot>::invalid_state;
  }
};

// The 68 slots that both versions have.
template <class Visit>
void for_each_common_slot(DAT_PROVIDER& t, Visit visit) {
  visit_slots<DAT_INVALID_HANDLE_IA>(
      visit, t.ia_open_func, t.ia_query_func, t.ia_close_func, t.pz_create_func, t.lmr_create_func,
      t.lmr_sync_rdma_read_func, t.lmr_sync_rdma_write_func, t.srq_create_func, t.evd_create_func, t.cno_create_func,
      t.ep_create_func, t.ep_create_with_srq_func, t.psp_create_func, t.psp_create_any_func, t.rsp_create_func);
  visit_slots<DAT_INVALID_HANDLE1>(visit, t.set_consumer_context_func, t.get_consumer_context_func,
                                   t.get_handle_type_func);
  visit_slots<DAT_INVALID_HANDLE_PZ>(visit, t.pz_query_func, t.pz_free_func, t.rmr_create_func);
  visit_slots<DAT_INVALID_HANDLE_LMR>(visit, t.lmr_query_func, t.lmr_free_func);
  visit_slots<DAT_INVALID_HANDLE_RMR>(visit, t.rmr_query_func, t.rmr_bind_func, t.rmr_free_func);
  visit_slots<DAT_INVALID_HANDLE_SRQ>(visit, t.srq_query_func, t.srq_free_func, t.srq_post_recv_func, t.srq_resize_func,
                                      t.srq_set_lw_func);
  visit_slots<DAT_INVALID_HANDLE_EVD_REQUEST>(visit, t.evd_query_func, t.evd_modify_cno_func, t.evd_enable_func,
                                              t.evd_disable_func, t.evd_wait_func, t.evd_resize_func,
                                              t.evd_post_se_func, t.evd_dequeue_func, t.evd_free_func,
                                              t.evd_set_unwaitable_func, t.evd_clear_unwaitable_func);
  visit_slots<DAT_INVALID_HANDLE_CNO>(visit, t.cno_modify_agent_func, t.cno_query_func, t.cno_free_func,
                                      t.cno_wait_func);
  visit_slots<DAT_INVALID_HANDLE_EP>(visit, t.ep_query_func, t.ep_modify_func, t.ep_connect_func, t.ep_dup_connect_func,
                                     t.ep_disconnect_func, t.ep_post_send_func, t.ep_post_recv_func,
                                     t.ep_post_rdma_read_func, t.ep_post_rdma_write_func, t.ep_get_status_func,
                                     t.ep_recv_query_func, t.ep_set_watermark_func, t.ep_reset_func, t.ep_free_func);
  visit_slots<DAT_INVALID_HANDLE_PSP>(visit, t.psp_query_func, t.psp_free_func);
  visit_slots<DAT_INVALID_HANDLE_RSP>(visit, t.rsp_query_func, t.rsp_free_func);
  visit_slots<DAT_INVALID_HANDLE_CR>(visit, t.cr_query_func, t.cr_accept_func, t.cr_reject_func, t.cr_handoff_func);
}

// Sets their functions, except ia_open, and the words before them.
void fill_common_slots(DAT_PROVIDER& table, const char* name);

}  // namespace dapple::face
