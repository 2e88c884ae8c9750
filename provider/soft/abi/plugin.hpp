// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface between the plug-in's registration with libibverbs (provider/soft/abi) and the verbs objects
// (provider/soft).
//
// The registration lists the devices, allocates each ibv_context, puts operations() into it at the indexes that the
// running libibverbs has, and frees it. The verbs objects define make_context(), free_context() and operations(). The
// structures that they allocate begin with those of provider/soft/abi/structures.hpp.
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#include "provider/private_api/operation_types.hpp"

namespace dapple::soft {

// The verbs objects' part of an open device.
class Context;

// An asynchronous event on async_writer, in one write().
struct AsyncMessage {
  uint64_t element;  // the ibv_cq*, ibv_qp* or ibv_srq*, or the port's number
  uint32_t event;    // ibv_event_type
  uint32_t reserved;
};
static_assert(sizeof(AsyncMessage) == 16);

// A completion event on channel_writer(), in one write(): the ibv_cq*.
using CompletionMessage = uint64_t;

struct ContextInit {
  ibv_context* ibv;         // as the operations get it. Its device, cmd_fd, async_fd are set
  const char* device_name;  // "dapple0"; valid as long as the context
  uint64_t node_guid;       // in network byte order, as ibv_get_device_guid() returns it
  uint32_t device_index;    // the one of NETLINK_RDMA
  int async_writer;         // non-blocking; free_context() closes it
  bool has_wr_flush;        // the context's libibverbs has ibv_wr_flush()
  bool is_import = false;   // the cmd_fd is a copy of that of another context, perhaps in another process
};

// Sets num_comp_vectors. Null with errno if the device cannot be opened.
Context* make_context(const ContextInit& init);

// The program has destroyed or leaked all of the context's verbs objects. The ibv_context is still there.
void free_context(Context* context);

// The devices that the program has closed, under dapple-run --check. True after a report: the context has been closed
// before.
bool was_closed(ibv_context* context);
// The program closes the context, for the first time. True: its memory must stay as it is until forget_closed().
bool keeps_closed(ibv_context* context);
void forget_closed(ibv_context* context);

// The Context of an ibv_context of ours: the pointer behind it.
inline Context* context_of(const ibv_context* context) {
  return *reinterpret_cast<Context* const*>(context + 1);
}

// In a child of fork(): replaces it.
inline void set_context_of(ibv_context* ibv, Context* context) {
  *reinterpret_cast<Context**>(ibv + 1) = context;
}

// In a child of fork(): a pipe for asynchronous events of its own, in the place of the parent's. The number of the
// reading end stays. Returns the new async_writer; -1 if the program has closed the reading end, or there is no pipe.
int renew_async_events(int async_fd, int async_writer);

// The descriptor to write a completion channel's events to, non-blocking; -1 if the channel is not ours. It lives as
// long as the channel. A full pipe returns EAGAIN.
int channel_writer(const ibv_comp_channel* channel);

// The operations of a context, by libibverbs' names. libibverbs answers EOPNOTSUPP for a null operation. The
// registration uses free_context.
struct Operations {
  int (*advise_mr)(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list, uint32_t count) = nullptr;
  ibv_dm* (*alloc_dm)(ibv_context* context, ibv_alloc_dm_attr* attr) = nullptr;
  provider::DmaHandle* (*alloc_dmah)(ibv_context* context, provider::DmaHandleInitAttr* attr) = nullptr;
  ibv_mw* (*alloc_mw)(ibv_pd* pd, ibv_mw_type type) = nullptr;
  provider::AllocNullMr alloc_null_mr = nullptr;
  ibv_pd* (*alloc_parent_domain)(ibv_context* context, ibv_parent_domain_init_attr* attr) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context* context) = nullptr;
  ibv_td* (*alloc_td)(ibv_context* context, ibv_td_init_attr* attr) = nullptr;
  void (*async_event)(ibv_context* context, ibv_async_event* event) = nullptr;
  int (*attach_counters_point_flow)(ibv_counters* counters, ibv_counter_attach_attr* attr, ibv_flow* flow) = nullptr;
  int (*attach_mcast)(ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) = nullptr;
  int (*bind_mw)(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) = nullptr;
  int (*close_xrcd)(ibv_xrcd* xrcd) = nullptr;
  void (*cq_event)(ibv_cq* cq) = nullptr;
  ibv_ah* (*create_ah)(ibv_pd* pd, ibv_ah_attr* attr) = nullptr;
  provider::CompletionCounter* (*create_comp_cntr)(ibv_context* context,
                                                   provider::CompletionCounterInitAttr* attr) = nullptr;
  ibv_counters* (*create_counters)(ibv_context* context, ibv_counters_init_attr* attr) = nullptr;
  ibv_cq* (*create_cq)(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector) = nullptr;
  ibv_cq_ex* (*create_cq_ex)(ibv_context* context, ibv_cq_init_attr_ex* attr) = nullptr;
  ibv_flow* (*create_flow)(ibv_qp* qp, ibv_flow_attr* attr) = nullptr;
  ibv_qp* (*create_qp)(ibv_pd* pd, ibv_qp_init_attr* attr) = nullptr;
  ibv_qp* (*create_qp_ex)(ibv_context* context, ibv_qp_init_attr_ex* attr) = nullptr;
  ibv_rwq_ind_table* (*create_rwq_ind_table)(ibv_context* context, ibv_rwq_ind_table_init_attr* attr) = nullptr;
  ibv_srq* (*create_srq)(ibv_pd* pd, ibv_srq_init_attr* attr) = nullptr;
  ibv_srq* (*create_srq_ex)(ibv_context* context, ibv_srq_init_attr_ex* attr) = nullptr;
  ibv_wq* (*create_wq)(ibv_context* context, ibv_wq_init_attr* attr) = nullptr;
  int (*dealloc_dmah)(provider::DmaHandle* handle) = nullptr;
  int (*dealloc_mw)(ibv_mw* mw) = nullptr;
  int (*dealloc_pd)(ibv_pd* pd) = nullptr;
  int (*dealloc_td)(ibv_td* td) = nullptr;
  provider::DeregMr dereg_mr = nullptr;
  int (*destroy_ah)(ibv_ah* ah) = nullptr;
  int (*destroy_comp_cntr)(provider::CompletionCounter* counter) = nullptr;
  int (*destroy_counters)(ibv_counters* counters) = nullptr;
  int (*destroy_cq)(ibv_cq* cq) = nullptr;
  int (*destroy_flow)(ibv_flow* flow) = nullptr;
  provider::DestroyQp destroy_qp = nullptr;
  int (*destroy_rwq_ind_table)(ibv_rwq_ind_table* table) = nullptr;
  int (*destroy_srq)(ibv_srq* srq) = nullptr;
  int (*destroy_wq)(ibv_wq* wq) = nullptr;
  int (*detach_mcast)(ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) = nullptr;
  int (*dm_export_dmabuf_fd)(ibv_dm* dm) = nullptr;
  int (*free_dm)(ibv_dm* dm) = nullptr;
  int (*get_srq_num)(ibv_srq* srq, uint32_t* number) = nullptr;
  ibv_dm* (*import_dm)(ibv_context* context, uint32_t handle) = nullptr;
  ibv_mr* (*import_mr)(ibv_pd* pd, uint32_t handle) = nullptr;
  ibv_pd* (*import_pd)(ibv_context* context, uint32_t handle) = nullptr;
  int (*inc_comp_cntr)(provider::CompletionCounter* counter, uint64_t amount) = nullptr;
  int (*inc_err_comp_cntr)(provider::CompletionCounter* counter, uint64_t amount) = nullptr;
  int (*modify_cq)(ibv_cq* cq, ibv_modify_cq_attr* attr) = nullptr;
  provider::ModifyQp modify_qp = nullptr;
  int (*modify_qp_rate_limit)(ibv_qp* qp, ibv_qp_rate_limit_attr* attr) = nullptr;
  int (*modify_srq)(ibv_srq* srq, ibv_srq_attr* attr, int mask) = nullptr;
  int (*modify_wq)(ibv_wq* wq, ibv_wq_attr* attr) = nullptr;
  ibv_qp* (*open_qp)(ibv_context* context, ibv_qp_open_attr* attr) = nullptr;
  ibv_xrcd* (*open_xrcd)(ibv_context* context, ibv_xrcd_init_attr* attr) = nullptr;
  provider::PollCq poll_cq = nullptr;
  int (*post_recv)(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** bad) = nullptr;
  provider::PostSend post_send = nullptr;
  int (*post_srq_ops)(ibv_srq* srq, ibv_ops_wr* operations, ibv_ops_wr** bad) = nullptr;
  int (*post_srq_recv)(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** bad) = nullptr;
  int (*qp_attach_comp_cntr)(ibv_qp* qp, provider::CompletionCounter* counter,
                             provider::CompletionCounterAttachAttr* attr) = nullptr;
  // caps_size may be that of a shorter or a longer structure than ours.
  int (*query_comp_cntr_caps)(ibv_context* context, provider::CompletionCounterCaps* caps, size_t caps_size) = nullptr;
  // attr_size may be that of ibv_device_attr alone, or a longer structure than our header's.
  int (*query_device_ex)(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                         size_t attr_size) = nullptr;
  int (*query_ece)(ibv_qp* qp, ibv_ece* ece) = nullptr;
  int (*query_port)(ibv_context* context, uint8_t port, ibv_port_attr* attr) = nullptr;
  int (*query_port_speed)(ibv_context* context, uint32_t port, uint64_t* speed) = nullptr;
  provider::QueryQp query_qp = nullptr;
  int (*query_qp_data_in_order)(ibv_qp* qp, ibv_wr_opcode opcode, uint32_t flags) = nullptr;
  int (*query_rt_values)(ibv_context* context, ibv_values_ex* values) = nullptr;
  int (*query_srq)(ibv_srq* srq, ibv_srq_attr* attr) = nullptr;
  int (*read_comp_cntr)(provider::CompletionCounter* counter, uint64_t* value) = nullptr;
  int (*read_counters)(ibv_counters* counters, uint64_t* values, uint32_t count, uint32_t flags) = nullptr;
  int (*read_err_comp_cntr)(provider::CompletionCounter* counter, uint64_t* value) = nullptr;
  provider::RegDmMr reg_dm_mr = nullptr;
  provider::RegDmabufMr reg_dmabuf_mr = nullptr;
  provider::RegMr reg_mr = nullptr;
  provider::RegMrEx reg_mr_ex = nullptr;
  int (*req_notify_cq)(ibv_cq* cq, int solicited_only) = nullptr;
  provider::ReregMr rereg_mr = nullptr;
  int (*resize_cq)(ibv_cq* cq, int cqe) = nullptr;
  int (*set_comp_cntr)(provider::CompletionCounter* counter, uint64_t value) = nullptr;
  int (*set_ece)(ibv_qp* qp, ibv_ece* ece) = nullptr;
  int (*set_err_comp_cntr)(provider::CompletionCounter* counter, uint64_t value) = nullptr;
  void (*unimport_dm)(ibv_dm* dm) = nullptr;
  void (*unimport_mr)(ibv_mr* mr) = nullptr;
  void (*unimport_pd)(ibv_pd* pd) = nullptr;
};

const Operations& operations();

}  // namespace dapple::soft
