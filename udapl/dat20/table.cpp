// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider table of DAT 2.0, and the table of freed objects.
#include "udapl/face/table.hpp"

#include "udapl/dat20/functions.hpp"
#include "udapl/face/provider.hpp"
#include "udapl/face/version.hpp"

namespace dapple::face {
namespace {

template <class Visit>
void for_each_slot(DAT_PROVIDER& t, Visit visit) {
  for_each_common_slot(t, visit);
  visit_slots<DAT_INVALID_HANDLE_IA>(visit, t.ia_ha_related_func, t.cno_fd_create_func, t.csp_create_func);
  visit_slots<DAT_INVALID_HANDLE1>(visit, t.handle_extendedop_func);
  visit_slots<DAT_INVALID_HANDLE_PZ>(visit, t.rmr_create_for_ep_func);
  visit_slots<DAT_INVALID_HANDLE_CNO>(visit, t.cno_trigger_func);
  visit_slots<DAT_INVALID_HANDLE_EP>(visit, t.ep_common_connect_func, t.ep_post_send_with_invalidate_func,
                                     t.ep_post_rdma_read_to_rmr_func);
  visit_slots<DAT_INVALID_HANDLE_CSP>(visit, t.csp_query_func, t.csp_free_func);
}

constexpr size_t kSlots = 79;
static_assert(sizeof(DAT_PROVIDER) == (kSlots + 2) * sizeof(void*));

}  // namespace

const DAT_PROVIDER& dead_table() {
  static const DAT_PROVIDER table = [] {
    DAT_PROVIDER dead{};
    dead.device_name = "freed";
    dead.extension = reinterpret_cast<DAT_PVOID>(kTableMark);  // NOLINT(performance-no-int-to-ptr): it is a number
    for_each_slot(dead, RefuseHandle());
    return dead;
  }();
  return table;
}

void refuse_everything(DAT_PROVIDER& table) {
  for_each_slot(table, RefuseEverything());
}

DAT_PROVIDER make_table(const char* name, DAT_IA_OPEN_FUNC ia_open) {
  DAT_PROVIDER t{};
  for_each_slot(t, NotImplemented());
  fill_common_slots(t, name);
  t.ia_open_func = ia_open;
  t.rmr_create_for_ep_func = rmr_create_for_ep;
  t.ep_post_send_with_invalidate_func = ep_post_send_with_invalidate;
  t.ep_post_rdma_read_to_rmr_func = ep_post_rdma_read_to_rmr;
  t.cno_fd_create_func = cno_fd_create;
  t.cno_trigger_func = cno_trigger;
  t.handle_extendedop_func = extended_op;
  t.csp_create_func = csp_create;
  t.csp_query_func = csp_query;
  t.csp_free_func = csp_free;
  t.ep_common_connect_func = ep_common_connect;
  t.ia_ha_related_func = ia_ha_related;
  return t;
}

}  // namespace dapple::face
