// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/checker.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/explain/requests/explained_operations.hpp"
#include "provider/soft/faults/fault_plan.hpp"
#include "provider/soft/hang/noted_operations.hpp"
#include "provider/soft/hang/notes/notes.hpp"
#include "provider/soft/hang/watcher.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"
#include "provider/soft/tombs/ended_contexts.hpp"
#include "provider/soft/tombs/guarded_operations.hpp"
#include "provider/soft/trace/program_trace.hpp"
#include "provider/soft/verbs/watched_operations.hpp"

namespace dapple::soft {
namespace {

using verbs::Program;

template <Program kProgram>
const Operations& made_operations() {
  static constexpr Operations table = {
      .advise_mr = verbs::advise_mr,
      .alloc_dm = verbs::alloc_dm,
      .alloc_dmah = verbs::alloc_dmah,
      .alloc_mw = verbs::alloc_mw,
      .alloc_null_mr = verbs::alloc_null_mr,
      .alloc_parent_domain = verbs::alloc_parent_domain,
      .alloc_pd = verbs::alloc_pd,
      .alloc_td = verbs::alloc_td,
      .attach_counters_point_flow = verbs::attach_counters_point_flow,
      .attach_mcast = verbs::attach_mcast,
      .bind_mw = verbs::bind_mw,
      .close_xrcd = verbs::close_xrcd,
      .create_ah = verbs::create_ah,
      .create_comp_cntr = verbs::create_comp_cntr,
      .create_counters = verbs::create_counters,
      .create_cq = verbs::create_cq,
      .create_cq_ex = verbs::create_cq_ex,
      .create_flow = verbs::create_flow,
      .create_qp = verbs::create_qp,
      .create_qp_ex = verbs::create_qp_ex,
      .create_rwq_ind_table = verbs::create_rwq_ind_table,
      .create_srq = verbs::create_srq,
      .create_srq_ex = verbs::create_srq_ex,
      .create_wq = verbs::create_wq,
      .dealloc_dmah = verbs::dealloc_dmah,
      .dealloc_mw = verbs::dealloc_mw,
      .dealloc_pd = verbs::dealloc_pd,
      .dealloc_td = verbs::dealloc_td,
      .dereg_mr = verbs::dereg_mr,
      .destroy_ah = verbs::destroy_ah,
      .destroy_comp_cntr = verbs::destroy_comp_cntr,
      .destroy_counters = verbs::destroy_counters,
      .destroy_cq = verbs::destroy_cq,
      .destroy_flow = verbs::destroy_flow,
      .destroy_qp = verbs::destroy_qp,
      .destroy_rwq_ind_table = verbs::destroy_rwq_ind_table,
      .destroy_srq = verbs::destroy_srq,
      .destroy_wq = verbs::destroy_wq,
      .detach_mcast = verbs::detach_mcast,
      .dm_export_dmabuf_fd = verbs::dm_export_dmabuf_fd,
      .free_dm = verbs::free_dm,
      .get_srq_num = verbs::get_srq_num,
      .import_dm = verbs::import_dm,
      .import_mr = verbs::import_mr,
      .import_pd = verbs::import_pd,
      .inc_comp_cntr = verbs::inc_comp_cntr,
      .inc_err_comp_cntr = verbs::inc_err_comp_cntr,
      .modify_cq = verbs::modify_cq,
      .modify_qp = verbs::modify_qp,
      .modify_qp_rate_limit = verbs::modify_qp_rate_limit,
      .modify_srq = verbs::modify_srq,
      .modify_wq = verbs::modify_wq,
      .open_qp = verbs::open_qp,
      .open_xrcd = verbs::open_xrcd,
      .poll_cq = verbs::poll_cq<kProgram>,
      .post_recv = verbs::post_recv<kProgram>,
      .post_send = verbs::post_send<kProgram>,
      .post_srq_ops = verbs::post_srq_ops,
      .post_srq_recv = verbs::post_srq_recv<kProgram>,
      .qp_attach_comp_cntr = verbs::qp_attach_comp_cntr,
      .query_comp_cntr_caps = verbs::query_comp_cntr_caps,
      .query_device_ex = verbs::query_device_ex,
      .query_ece = verbs::query_ece,
      .query_port = verbs::query_port,
      .query_port_speed = verbs::query_port_speed,
      .query_qp = verbs::query_qp,
      .query_qp_data_in_order = verbs::query_qp_data_in_order,
      .query_rt_values = verbs::query_rt_values,
      .query_srq = verbs::query_srq,
      .read_comp_cntr = verbs::read_comp_cntr,
      .read_counters = verbs::read_counters,
      .read_err_comp_cntr = verbs::read_err_comp_cntr,
      .reg_dm_mr = verbs::reg_dm_mr,
      .reg_dmabuf_mr = verbs::reg_dmabuf_mr,
      .reg_mr = verbs::reg_mr,
      .reg_mr_ex = verbs::reg_mr_ex,
      .req_notify_cq = verbs::req_notify_cq,
      .rereg_mr = verbs::rereg_mr,
      .resize_cq = verbs::resize_cq,
      .set_comp_cntr = verbs::set_comp_cntr,
      .set_ece = verbs::set_ece,
      .set_err_comp_cntr = verbs::set_err_comp_cntr,
      .unimport_dm = verbs::unimport_dm,
      .unimport_mr = verbs::unimport_mr,
      .unimport_pd = verbs::unimport_pd,
  };
  return table;
}

}  // namespace

const Operations& plain_operations() {
  return Sanitizer::of_program() != nullptr ? made_operations<Program::kSanitized>()
                                            : made_operations<Program::kPlain>();
}

const Operations& unchecked_operations() {
  // A program under the check comes here with each post and each poll.
  static const Operations& chosen = []() -> const Operations& {
    const FaultPlan* plan = fault_plan();
    const Operations& table = plan != nullptr && plan->plans_calls() ? planned_operations() : plain_operations();
    const Operations& noted = program_trace() != nullptr ? traced_operations(table) : table;
    return Sanitizer::of_program() == nullptr ? noted : watched_operations(noted);
  }();
  return chosen;
}

const Operations& operations() {
  const Operations& table = check::Checker::get() == nullptr ? unchecked_operations() : check::checked_operations();
  const bool is_plain = &table == &plain_operations() && hang::Notes::get() == nullptr;
  const Operations* made = &table;
  if (explain::process_reporter() != nullptr) {
    const bool explains = is_plain && Sanitizer::of_program() == nullptr;
    made = &explain::explained_operations(explains ? made_operations<Program::kExplained>() : table, explains);
  }
  if (hang::Notes::get() != nullptr) {
    hang::Watcher::start();
    made = &hang::noted_operations(*made);
  }
  // A call with an object that has ended goes no further.
  if (check::Checker::get() != nullptr) made = &tombs::guarded_operations(*made);
  return errno_operations(*made, is_plain);
}

bool was_closed(ibv_context* context) {
  return check::Checker::get() != nullptr && tombs::has_ended(context);
}

bool keeps_closed(ibv_context* context) {
  if (check::Checker::get() == nullptr) return false;
  tombs::end_context(context);
  return true;
}

void forget_closed(ibv_context* context) {
  tombs::forget_context(context);
}

}  // namespace dapple::soft
