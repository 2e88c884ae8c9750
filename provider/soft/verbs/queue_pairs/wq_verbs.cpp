// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Work queues, and the tables of them for receive side scaling. Behind a work queue is a raw packet queue pair that
// only receives: RESET is its INIT, in which a program may post already, and RDY is its RTR.
#include <errno.h>

#include <atomic>
#include <bit>
#include <cassert>
#include <memory>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/operations/checked_qp.hpp"
#include "provider/soft/explain/malformed_posts.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/qp_engine.hpp"
#include "provider/soft/verbs/queue_pairs/qp_users.hpp"
#include "provider/soft/verbs/queue_pairs/raw_limits.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"
#include "provider/soft/xrc/absent_objects.hpp"

namespace dapple::soft::verbs {
namespace {

std::atomic<int> next_table{1};

int check_wq(ibv_context* context, const ibv_wq_init_attr& attr) {
  if (const int error = check_raw(context); error != 0) return error;
  if ((attr.comp_mask & ~uint32_t{IBV_WQ_INIT_ATTR_FLAGS}) != 0 || attr.wq_type != IBV_WQT_RQ) {
    return refuse(EINVAL, "comp_mask is 0x%x and wq_type %d.\nUse IBV_WQ_INIT_ATTR_FLAGS at most, and IBV_WQT_RQ.",
                  attr.comp_mask, attr.wq_type);
  }
  if ((attr.comp_mask & IBV_WQ_INIT_ATTR_FLAGS) != 0 && attr.create_flags != 0) {
    return refuse(EOPNOTSUPP,
                  "create_flags is 0x%x, and the device strips no VLAN tags, scatters no FCS and delays no drop.\n"
                  "Compare it with raw_packet_caps of ibv_query_device_ex().",
                  attr.create_flags);
  }
  if (attr.pd == nullptr || attr.cq == nullptr || attr.pd->context != context || attr.cq->context != context)
    return refuse(EINVAL, "pd or cq is null, or belongs to another open device.\nSet both, of the same ibv_context.");
  const DeviceAttributes& most = context_of(context)->attributes();
  if (attr.max_wr == 0 || attr.max_wr > most.max_qp_wr || attr.max_sge > most.max_recv_sge) {
    return refuse(EINVAL,
                  "max_wr is %u and max_sge %u, and a work queue has 1 to %u requests (max_qp_wr) of at most %u "
                  "segments (max_sge).\nAsk for room within these limits.",
                  attr.max_wr, attr.max_sge, most.max_qp_wr, most.max_recv_sge);
  }
  return 0;
}

// The engine takes the state over. False if there is no such transition.
bool move(Qp& qp, roce::QpState to) {
  const EngineTurn turn(qp.runtime->engines(), qp, EngineTurn::End::kState);
  const uint32_t mask = to == roce::QpState::kInit ? roce::kState | roce::kPort : roce::kState;
  const bool moved = qp.engine->modify({.state = to}, mask);
  if (moved && to == roce::QpState::kReset) {
    qp.own_receives.clear();
    qp.recv_cq->queue.forget(qp.qpn);
  }
  return moved;
}

int equip(Qp& qp) {
  const CancelGuard whole;
  const ibv_qp_cap& cap = qp.init.cap;
  if (qp.own_receives.initialize(cap.max_recv_wr, cap.max_recv_sge, &qp.pd->allocator) != 0)
    return refuse_memory("receives");
  if (qp.runtime->add(qp) != 0) return refuse_memory("work queues, or their numbers are all taken");
  if (!make_engine(qp, 0) || !move(qp, roce::QpState::kInit)) {
    qp.runtime->remove(qp);
    return refuse_memory("work queues");
  }
  qp.runtime->open(qp);
  return 0;
}

// As ibv_post_recv(). The queue pair is unknown to the layers that look at the program's objects.
int post_recv(ibv_wq* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  check::Checker* const checker = check::Checker::get();
  if (checker != nullptr && explain::is_malformed(checker->reporter, "ibv_post_wq_recv", ibv, requests, bad))
    return EINVAL;  // no refusal: it is reported
  static const Operations& table = checker == nullptr ? unchecked_operations() : check::checked_operations();
  return table.post_recv(&ours<Wq>(ibv)->qp.abi.qp, requests, bad);
}

void publish(Wq& wq, const ibv_wq_init_attr& attr) {
  hold_objects(wq.qp, attr.pd);
  wq.ibv.context = wq.qp.context->ibv;
  wq.ibv.pd = attr.pd;
  wq.ibv.cq = attr.cq;
  wq.ibv.wq_num = wq.ibv.handle = wq.qp.qpn;
  wq.ibv.state = IBV_WQS_RESET;
  wq.ibv.wq_type = IBV_WQT_RQ;
  wq.ibv.post_recv = &post_recv;
}

ibv_wq_state state_of(const Qp& qp) {
  switch (qp.state.load()) {
    case roce::QpState::kReset:
    case roce::QpState::kInit:
      return IBV_WQS_RESET;
    case roce::QpState::kError:
      return IBV_WQS_ERR;
    default:
      return IBV_WQS_RDY;
  }
}

int refuse_wq_state(const char* what, int state) {
  return refuse(EINVAL,
                "%s is %d, and the work queue cannot change so.\nChange RESET to RDY, RDY to ERR or RESET, and "
                "ERR to RESET.",
                what, state);
}

}  // namespace

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr) {
  if (!usable(context)) return failed(refuse_child());
  if (const int error = check_wq(context, *attr); error != 0) return failed(error);
  if (const int error = check_lives(attr->pd); error != 0) return failed(error);
  Context& device = *context_of(context);
  CountedObject counted_object = device.objects.take(ObjectKind::kQp);
  std::unique_ptr<Wq> wq(counted_object ? new (std::nothrow) Wq : nullptr);
  if (wq == nullptr) return failed(refuse_limit(device, ObjectKind::kQp));
  Qp& qp = wq->qp;
  qp.counted_object = std::move(counted_object);
  qp.init.qp_type = IBV_QPT_RAW_PACKET;
  qp.init.recv_cq = attr->cq;
  qp.init.cap.max_recv_wr = granted_depth(attr->max_wr, device.attributes().max_qp_wr);
  qp.init.cap.max_recv_sge = attr->max_sge;
  qp.context = &device;
  qp.runtime = &device.runtime;
  qp.traffic = &device.traffic;
  qp.pd = original_of<Pd>(attr->pd);
  qp.domain = &qp.pd->lowest();
  qp.send_cq = &absent_cq();
  qp.recv_cq = ours<Cq>(attr->cq);
  if (const int error = equip(qp); error != 0) return failed(error);
  publish(*wq, *attr);
  attr->max_wr = qp.init.cap.max_recv_wr;
  return &wq.release()->ibv;
}

int modify_wq(ibv_wq* ibv, ibv_wq_attr* attr) {
  if (!usable(ibv->context)) return refuse_child();
  const CancelGuard whole;
  constexpr uint32_t kKnown = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE | IBV_WQ_ATTR_FLAGS;
  if (attr->attr_mask == 0 || (attr->attr_mask & ~kKnown) != 0)
    return refuse(EINVAL, "attr_mask is 0x%x.\nUse the bits of enum ibv_wq_attr_mask.", attr->attr_mask);
  if ((attr->attr_mask & IBV_WQ_ATTR_FLAGS) != 0 && attr->flags_mask != 0)
    return refuse(EOPNOTSUPP, "flags_mask is 0x%x, and the device has no such flags.\nSet it to 0.", attr->flags_mask);
  Qp& qp = ours<Wq>(ibv)->qp;
  const std::lock_guard modifying(qp.modifying);
  const ibv_wq_state from = state_of(qp);
  if ((attr->attr_mask & IBV_WQ_ATTR_CURR_STATE) != 0 && attr->curr_wq_state != from)
    return refuse_wq_state("curr_wq_state", attr->curr_wq_state);
  if ((attr->attr_mask & IBV_WQ_ATTR_STATE) == 0) return 0;
  bool moved = false;
  switch (attr->wq_state) {
    case IBV_WQS_RESET:
      moved = move(qp, roce::QpState::kReset) && move(qp, roce::QpState::kInit);
      break;
    case IBV_WQS_RDY:
      moved = from == IBV_WQS_RDY || (from == IBV_WQS_RESET && move(qp, roce::QpState::kRtr));
      break;
    case IBV_WQS_ERR:
      moved = move(qp, roce::QpState::kError);
      break;
    default:
      break;
  }
  if (!moved) return refuse_wq_state("wq_state", attr->wq_state);
  ibv->state = attr->wq_state;
  return 0;
}

int destroy_wq(ibv_wq* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  if (const uint32_t users = ours<Wq>(ibv)->users.load(); users != 0) {
    return refuse(EBUSY, "%u indirection tables have the work queue.\nCall ibv_destroy_rwq_ind_table() for each first.",
                  users);
  }
  std::unique_ptr<Wq> wq(ours<Wq>(ibv));
  assert(wq->users.load() == 0);
  Pd& pd = leave_objects(wq->qp);
  wq.reset();
  leave(pd.users);
  return 0;
}

ibv_rwq_ind_table* create_rwq_ind_table(ibv_context* context, ibv_rwq_ind_table_init_attr* attr) {
  if (!usable(context)) return failed(refuse_child());
  if (const int error = check_raw(context); error != 0) return failed(error);
  if (attr->comp_mask != 0 || attr->log_ind_tbl_size > std::bit_width(kMaxTableSize) - 1) {
    return failed(refuse(EINVAL,
                         "comp_mask is 0x%x and log_ind_tbl_size %u, and a table has at most %u entries.\n"
                         "Set comp_mask to 0, and log_ind_tbl_size to the logarithm of the number of entries.",
                         attr->comp_mask, attr->log_ind_tbl_size, kMaxTableSize));
  }
  const uint32_t size = 1u << attr->log_ind_tbl_size;
  for (uint32_t i = 0; i < size; i++) {
    if (attr->ind_tbl[i] != nullptr && attr->ind_tbl[i]->context == context) continue;
    return failed(refuse(EINVAL, "ind_tbl[%u] is null, or of another open device.\nSet all %u entries.", i, size));
  }
  Context& device = *context_of(context);
  CountedObject counted_object = device.objects.take(ObjectKind::kIndirectionTable);
  std::unique_ptr<RwqTable> table(counted_object ? new (std::nothrow) RwqTable : nullptr);
  if (table != nullptr) table->queues.reset(new (std::nothrow) Wq*[size]);
  if (table == nullptr || table->queues == nullptr) return failed(refuse_limit(device, ObjectKind::kIndirectionTable));
  table->counted_object = std::move(counted_object);
  table->size = size;
  table->ibv.context = context;
  table->ibv.ind_tbl_handle = table->ibv.ind_tbl_num = next_table.fetch_add(1);
  for (uint32_t i = 0; i < size; i++) {
    table->queues[i] = ours<Wq>(attr->ind_tbl[i]);
    table->queues[i]->users.fetch_add(1);
  }
  return &table.release()->ibv;
}

int destroy_rwq_ind_table(ibv_rwq_ind_table* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  if (const uint32_t users = ours<RwqTable>(ibv)->users.load(); users != 0)
    return refuse(EBUSY, "%u queue pairs use the indirection table.\nCall ibv_destroy_qp() for each first.", users);
  const std::unique_ptr<RwqTable> table(ours<RwqTable>(ibv));
  for (uint32_t i = 0; i < table->size; i++) leave(table->queues[i]->users);
  return 0;
}

}  // namespace dapple::soft::verbs
