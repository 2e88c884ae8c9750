// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Queue pairs: making them and taking them away.
#include <errno.h>
#include <stdio.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/transport/shown_qp.hpp"
#include "provider/soft/verbs/queue_pairs/qp_checks.hpp"
#include "provider/soft/verbs/queue_pairs/qp_engine.hpp"
#include "provider/soft/verbs/queue_pairs/qp_users.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"
#include "provider/soft/verbs/queue_pairs/xrc_handles.hpp"
#include "provider/soft/weak_order/waits.hpp"
#include "provider/soft/xrc/absent_objects.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::verbs {
namespace {

// A program with ThreadSanitizer sees both queues as threads of their own: the completion of a Send tells nothing about
// the receives.
void announce(Qp& qp) {
  const roce::Accessor who = {qp.pd->number, qp.qpn};
  char name[64];
  snprintf(name, sizeof name, "QP 0x%x of %.32s", qp.qpn, qp.context->ibv->device->name);
  qp.layers.announced_sends = AnnouncedQueue::make(qp.context->memory, who, name);
  snprintf(name, sizeof name, "receives of QP 0x%x of %.32s", qp.qpn, qp.context->ibv->device->name);
  qp.layers.announced_receives = AnnouncedQueue::make(qp.context->memory, who, name);
}

// The receive queue, the number, the engine.
int equip(Qp& qp) {
  const ibv_qp_cap& cap = qp.init.cap;
  int error = qp.own_receives.initialize(cap.max_recv_wr, cap.max_recv_sge, &qp.pd->allocator);
  if (error != 0) return refuse_memory("receives");
  DeviceInfo info;
  error = qp.context->look_up(info);
  if (error != 0) return error;
  error = qp.runtime->add(qp);
  if (error != 0) return refuse_memory("queue pairs, or their numbers are all taken");
  if (!make_engine(qp, info.netdev_mtu)) {
    qp.runtime->remove(qp);
    return refuse_memory("send requests");
  }
  announce(qp);
  qp.runtime->open(qp);
  return 0;
}

void publish(Qp& qp, ibv_pd* pd) {
  hold_objects(qp, pd);
  assert(qp.engine != nullptr && qp.qpn != 0);
  const BiasedLock lock(qp.mutex);
  qp.shown = qp.context->resources().add(row_of(qp));
}

ibv_qp* make_qp(const QpParts& parts, ibv_qp_init_attr& attr) {
  if (!usable(parts.context)) return failed(refuse_child());
  leave_out_what_is_lacking(attr);
  int error = check_qp(parts, attr);
  if (error == 0 && parts.pd != nullptr) error = check_lives(parts.pd);
  if (error != 0) return failed(error);
  Context& context = *context_of(parts.context);
  CountedObject counted_object = context.objects.take(ObjectKind::kQp);
  std::unique_ptr<Qp> qp(counted_object ? new (std::nothrow) Qp : nullptr);
  if (qp == nullptr) return failed(refuse_limit(context, ObjectKind::kQp));
  qp->counted_object = std::move(counted_object);
  const DeviceAttributes& most = context.attributes();
  attr.cap.max_recv_wr = granted_depth(attr.cap.max_recv_wr, most.max_qp_wr);
  if (has_sends(attr.qp_type) && parts.table == nullptr) {
    attr.cap.max_send_wr = granted_depth(attr.cap.max_send_wr, most.max_qp_wr);
    // Like rxe, which keeps inline data in the room for the segments. Some programs use inline data that they did not
    // ask for (rdma_xclient).
    const uint32_t segments = attr.cap.max_send_sge * static_cast<uint32_t>(sizeof(ibv_sge));
    attr.cap.max_inline_data = std::min(std::max(attr.cap.max_inline_data, segments), most.max_inline);
  }
  qp->init = attr;
  qp->context = &context;
  qp->runtime = &context.runtime;
  qp->traffic = &context.traffic;
  qp->pd = parts.pd == nullptr ? &absent_pd() : original_of<Pd>(parts.pd);
  qp->domain = &qp->pd->lowest();
  qp->send_cq = attr.send_cq == nullptr ? &absent_cq() : ours<Cq>(attr.send_cq);
  qp->recv_cq = attr.recv_cq == nullptr ? &absent_cq() : ours<Cq>(attr.recv_cq);
  qp->srq = attr.srq == nullptr ? nullptr : ours<Srq>(attr.srq);
  if (qp->srq != nullptr && qp->srq->tags != nullptr) qp->recv_cq = &qp->srq->tags->cq;
  if (attr.qp_type == IBV_QPT_XRC_RECV) error = join_xrc(*qp, *ours<Xrcd>(parts.xrcd));
  if (attr.qp_type == IBV_QPT_RAW_PACKET) error = join_frames(*qp, parts);
  if (error == 0 && parts.is_extended) error = publish_qp_ex(*qp, parts.send_operations);
  if (error == 0) error = equip(*qp);
  if (error != 0) {
    leave_frames(*qp);
    return failed(error);
  }
  publish(*qp, parts.pd);
  if (qp->xrc != nullptr) show_to_domain(*qp);
  return &qp.release()->abi.qp;
}

bool has_outstanding_sends(Qp& qp) {
  const BiasedLock lock(qp.mutex);
  return qp.engine->outstanding_sends() != 0;
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  ibv_qp_init_attr wanted = *attr;
  ibv_qp* qp = make_qp({.context = pd->context, .pd = pd}, wanted);
  if (qp != nullptr) attr->cap = wanted.cap;
  return qp;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                              IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (const uint32_t unknown = attr->comp_mask & ~kKnown; unknown != 0) {
    return failed(refuse(EOPNOTSUPP,
                         "comp_mask has 0x%x, which the device does not know.\n"
                         "Leave IBV_QP_INIT_ATTR_MAX_TSO_HEADER and newer bits out.",
                         unknown));
  }
  const bool has_pd = (attr->comp_mask & IBV_QP_INIT_ATTR_PD) != 0;
  if (!has_pd && attr->qp_type != IBV_QPT_XRC_RECV)
    return failed(refuse(EINVAL, "comp_mask lacks IBV_QP_INIT_ATTR_PD.\nSet pd, and this bit."));
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attr->create_flags != 0) {
    return failed(refuse(EOPNOTSUPP, "create_flags is 0x%x, and the device knows no flags.\nSet create_flags to 0.",
                         attr->create_flags));
  }
  ibv_qp_init_attr plain = {
      .qp_context = attr->qp_context,
      .send_cq = attr->send_cq,
      .recv_cq = attr->recv_cq,
      .srq = attr->srq,
      .cap = attr->cap,
      .qp_type = attr->qp_type,
      .sq_sig_all = attr->sq_sig_all,
  };
  const bool is_extended = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  ibv_pd* pd = attr->qp_type == IBV_QPT_XRC_RECV ? nullptr : attr->pd;
  const QpParts parts = {
      .context = pd == nullptr ? context : pd->context,
      .pd = pd,
      .xrcd = (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) != 0 ? attr->xrcd : nullptr,
      .is_extended = is_extended,
      .send_operations = is_extended ? attr->send_ops_flags : 0,
      .table = (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE) != 0 ? ours<RwqTable>(attr->rwq_ind_tbl) : nullptr,
      .hash = (attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH) != 0 ? &attr->rx_hash_conf : nullptr,
  };
  ibv_qp* qp = make_qp(parts, plain);
  if (qp != nullptr) attr->cap = plain.cap;
  return qp;
}

int destroy_qp(ibv_qp* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  if (const uint32_t groups = ours<Qp>(ibv)->multicast_groups.load(); groups != 0) {
    return refuse(EBUSY, "the queue pair is attached to %u multicast groups.\nCall ibv_detach_mcast() for each first.",
                  groups);
  }
  if (const RawQp* raw = ours<Qp>(ibv)->raw.get(); raw != nullptr && raw->flows.load() != 0) {
    return refuse(EBUSY, "%u flows steer frames to the queue pair.\nCall ibv_destroy_flow() for each first.",
                  raw->flows.load());
  }
  if (ours<Qp>(ibv)->xrc != nullptr) {
    close_xrc_qp(*ours<Qp>(ibv));
    return 0;
  }
  std::unique_ptr<Qp> qp(ours<Qp>(ibv));
  {
    const CancelGuard whole;
    // order=weak: a NIC has placed all bytes and sent all acknowledgements by now.
    await_all_waits();
    // The peer's last acknowledgements may have arrived already. A NIC has completed their requests then.
    if (has_outstanding_sends(*qp)) qp->runtime->catch_up();
  }
  Pd& pd = leave_objects(*qp);
  qp.reset();
  leave(pd.users);
  return 0;
}

}  // namespace dapple::soft::verbs
