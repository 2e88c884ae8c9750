// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The verbs objects' operations, in the files of provider/soft/verbs/. Each is one of libibverbs', under its name.
#pragma once

#include <type_traits>
#include <utility>

#include "provider/soft/abi/plugin.hpp"

namespace dapple::soft {

// unchecked_operations() is one of the two, or traced_operations() of one.
const Operations& plain_operations();
const Operations& planned_operations();

const Operations& unchecked_operations();
// The same operations, or others around them: the error numbers that they return are in errno, too. For one table. The
// plain operations of the data path set errno where they fail, so that no other call pays for it.
const Operations& errno_operations(const Operations& operations, bool data_path_sets_errno);
namespace check {
// The same, for a program under dapple-run --check: they note the program's calls.
const Operations& checked_operations();
}  // namespace check

// The type of an operation, by its member of Operations.
template <auto kMember>
using FunctionOf = std::remove_reference_t<decltype(std::declval<Operations>().*kMember)>;

// Whether the operation returns a number, or an error below 0. Others return an error, or null with the error in errno.
template <auto kMember>
inline constexpr bool kReturnsNumber = false;
template <>
inline constexpr bool kReturnsNumber<&Operations::dm_export_dmabuf_fd> = true;
template <>
inline constexpr bool kReturnsNumber<&Operations::poll_cq> = true;

}  // namespace dapple::soft

namespace dapple::soft::verbs {

// Operations of the data path exist for each of these, so that a plain program pays for nothing else: one with a
// sanitizer, and one under dapple-run --explain alone, whose operations report their failures themselves.
enum class Program : uint8_t { kPlain, kSanitized, kExplained };

// memory/domain_verbs.cpp
ibv_pd* alloc_pd(ibv_context* context);
int dealloc_pd(ibv_pd* pd);
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attr);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr);

// memory/device_memory_verbs.cpp
ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr);
int dm_export_dmabuf_fd(ibv_dm* dm);
int free_dm(ibv_dm* dm);

// memory/dma_handle_verbs.cpp
provider::DmaHandle* alloc_dmah(ibv_context* context, provider::DmaHandleInitAttr* attr);
int dealloc_dmah(provider::DmaHandle* handle);

// memory/advice_verbs.cpp
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list, uint32_t count);

// memory/mr_verbs.cpp
ibv_mr* alloc_null_mr(ibv_pd* pd);
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t length, unsigned access);
ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access);
ibv_mr* reg_mr_ex(ibv_pd* pd, provider::RegionInitAttr* attr);
ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
int rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access);
int dereg_mr(ibv_mr* mr);

// memory/import_verbs.cpp
ibv_pd* import_pd(ibv_context* context, uint32_t handle);
void unimport_pd(ibv_pd* pd);
ibv_mr* import_mr(ibv_pd* pd, uint32_t handle);
void unimport_mr(ibv_mr* mr);
ibv_dm* import_dm(ibv_context* context, uint32_t handle);
void unimport_dm(ibv_dm* dm);

// rate_verbs.cpp
int modify_qp_rate_limit(ibv_qp* qp, ibv_qp_rate_limit_attr* attr);

// memory/mw_verbs.cpp
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
int dealloc_mw(ibv_mw* mw);

// cq_verbs.cpp
ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr);
int destroy_cq(ibv_cq* cq);
int resize_cq(ibv_cq* cq, int cqe);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr);
template <Program kProgram>
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);

// queue_pairs/srq_verbs.cpp
ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr);
int modify_srq(ibv_srq* srq, ibv_srq_attr* attr, int mask);
int query_srq(ibv_srq* srq, ibv_srq_attr* attr);
int destroy_srq(ibv_srq* srq);
template <Program kProgram>
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** bad);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr);
int get_srq_num(ibv_srq* srq, uint32_t* number);

// queue_pairs/tag_verbs.cpp
int post_srq_ops(ibv_srq* srq, ibv_ops_wr* operations, ibv_ops_wr** bad);

// queue_pairs/xrc_verbs.cpp
ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* attr);
int close_xrcd(ibv_xrcd* xrcd);
ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr);

// queue_pairs/qp_verbs.cpp
ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr);
int destroy_qp(ibv_qp* qp);

// queue_pairs/qp_modify_verbs.cpp
int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask);
int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);

// flow_verbs.cpp
ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr);
int destroy_flow(ibv_flow* flow);

// counters_verbs.cpp
ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attr);
int destroy_counters(ibv_counters* counters);
int attach_counters_point_flow(ibv_counters* counters, ibv_counter_attach_attr* attr, ibv_flow* flow);
int read_counters(ibv_counters* counters, uint64_t* values, uint32_t count, uint32_t flags);

// queue_pairs/completion_counter_verbs.cpp
int query_comp_cntr_caps(ibv_context* context, provider::CompletionCounterCaps* caps, size_t caps_size);
provider::CompletionCounter* create_comp_cntr(ibv_context* context, provider::CompletionCounterInitAttr* attr);
int destroy_comp_cntr(provider::CompletionCounter* counter);
int qp_attach_comp_cntr(ibv_qp* qp, provider::CompletionCounter* counter, provider::CompletionCounterAttachAttr* attr);
int read_comp_cntr(provider::CompletionCounter* counter, uint64_t* value);
int read_err_comp_cntr(provider::CompletionCounter* counter, uint64_t* value);
int set_comp_cntr(provider::CompletionCounter* counter, uint64_t value);
int set_err_comp_cntr(provider::CompletionCounter* counter, uint64_t value);
int inc_comp_cntr(provider::CompletionCounter* counter, uint64_t amount);
int inc_err_comp_cntr(provider::CompletionCounter* counter, uint64_t amount);

// queue_pairs/wq_verbs.cpp
ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr);
int modify_wq(ibv_wq* wq, ibv_wq_attr* attr);
int destroy_wq(ibv_wq* wq);
ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr);
int destroy_rwq_ind_table(ibv_rwq_ind_table* table);

// queue_pairs/ece_verbs.cpp
int query_ece(ibv_qp* qp, ibv_ece* ece);
int set_ece(ibv_qp* qp, ibv_ece* ece);

// queue_pairs/post_verbs.cpp
template <Program kProgram>
int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad);
template <Program kProgram>
int post_recv(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** bad);

// address_verbs.cpp
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr);
int destroy_ah(ibv_ah* ah);
int attach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);
int detach_mcast(ibv_qp* qp, const union ibv_gid* gid, uint16_t lid);

// query_verbs.cpp
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    size_t attr_size);
int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attr);
int query_port_speed(ibv_context* context, uint32_t port, uint64_t* speed);
int query_rt_values(ibv_context* context, ibv_values_ex* values);
int query_qp_data_in_order(ibv_qp* qp, ibv_wr_opcode opcode, uint32_t flags);

}  // namespace dapple::soft::verbs
