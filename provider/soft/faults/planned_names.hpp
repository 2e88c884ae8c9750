// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The things that a plan of faults counts, and their names.
#pragma once

#include <cstddef>
#include <string_view>

#include "provider/private_api/layout.hpp"

namespace dapple::soft {

// The plan counts calls of these operations of libibverbs and of ibv_open_device(), and successful completions.
// clang-format off
#define DAPPLE_PLANNED_VERBS(X) \
  X(advise_mr) X(alloc_dm) X(alloc_dmah) X(alloc_mw) X(alloc_null_mr) X(alloc_parent_domain) X(alloc_pd) X(alloc_td) \
  X(attach_counters_point_flow) X(attach_mcast) X(bind_mw) X(close_xrcd) X(create_ah) X(create_comp_cntr) X(create_counters) X(create_cq) X(create_cq_ex) X(create_flow) X(create_qp) X(create_qp_ex) X(create_rwq_ind_table) X(create_srq) X(create_srq_ex) X(create_wq) \
  X(dealloc_dmah) X(dealloc_mw) X(dealloc_pd) X(dealloc_td) X(dereg_mr) X(destroy_ah) X(destroy_comp_cntr) X(destroy_counters) X(destroy_cq) X(destroy_flow) X(destroy_qp) X(destroy_rwq_ind_table) X(destroy_srq) X(destroy_wq) \
  X(detach_mcast) X(dm_export_dmabuf_fd) X(free_dm) X(get_srq_num) X(import_dm) X(import_mr) X(import_pd) X(inc_comp_cntr) X(inc_err_comp_cntr) X(modify_cq) X(modify_qp) X(modify_qp_rate_limit) X(modify_srq) X(modify_wq) X(open_qp) X(open_xrcd) X(poll_cq) X(post_recv) X(post_send) \
  X(post_srq_ops) X(post_srq_recv) X(qp_attach_comp_cntr) X(query_comp_cntr_caps) X(query_device_ex) X(query_ece) X(query_port) X(query_port_speed) X(query_qp) X(query_rt_values) X(query_srq) X(read_comp_cntr) X(read_counters) X(read_err_comp_cntr) X(reg_dm_mr) \
  X(reg_dmabuf_mr) X(reg_mr) X(req_notify_cq) X(rereg_mr) X(resize_cq) X(set_comp_cntr) X(set_ece) X(set_err_comp_cntr)
// clang-format on
// These operations cannot fail. A trace has their calls, and no plan counts them.
#define DAPPLE_UNFAILING_VERBS(X) X(query_qp_data_in_order) X(unimport_dm) X(unimport_mr) X(unimport_pd)
inline constexpr size_t kOpenDevice = provider::kMaxOperations;
inline constexpr size_t kCompletion = provider::kMaxOperations + 1;
inline constexpr size_t kEvent = provider::kMaxOperations + 2;  // counts successful completions, too
inline constexpr size_t kLink = provider::kMaxOperations + 3;   // the same
// Functions of librdmacm that give the kernel a command. The doors (provider/preload/doors/rdma_cm.cpp) count them.
// clang-format off
#define DAPPLE_PLANNED_COMMANDS(X) \
  X(accept) X(bind_addr) X(connect) X(create_id) X(disconnect) X(join_multicast) X(leave_multicast) X(listen) \
  X(reject) X(resolve_addr) X(resolve_route) X(set_option)
// clang-format on
enum class PlannedCommand : size_t {
  kBefore = kLink,
#define DAPPLE_COMMAND(name) name,
  DAPPLE_PLANNED_COMMANDS(DAPPLE_COMMAND)
#undef DAPPLE_COMMAND
      kCount
};

// The number of "ibv_reg_mr", "completion" or "rdma_connect"; SIZE_MAX for a name that nobody counts.
size_t counted_of(std::string_view name);
// Its name; empty for another number.
const char* counted_name(size_t of);

}  // namespace dapple::soft
