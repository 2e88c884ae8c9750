// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Queue pairs: making them and taking them away.
#include <errno.h>
#include <stdio.h>

#include <algorithm>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/member/port_mtu.hpp"
#include "provider/soft/check/checked_qp.hpp"
#include "provider/soft/explain/explained_qp.hpp"
#include "provider/soft/objects/extended_post.hpp"
#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/planned/planned_completions.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/trace/program_trace.hpp"
#include "provider/soft/trace/traced_completions.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/transport/shown_qp.hpp"

namespace dapple::soft::verbs {
namespace {

static_assert(static_cast<int>(roce::QpType::kRc) == IBV_QPT_RC);
static_assert(static_cast<int>(roce::QpType::kUc) == IBV_QPT_UC);
static_assert(static_cast<int>(roce::QpType::kUd) == IBV_QPT_UD);

int check(const ibv_pd& pd, const ibv_qp_init_attr& attr) {
  if (attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC && attr.qp_type != IBV_QPT_UD) {
    return refuse(EOPNOTSUPP, "qp_type is %d.\nUse IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD.", attr.qp_type);
  }
  if (attr.send_cq == nullptr || attr.recv_cq == nullptr) {
    return refuse(EINVAL, "%s is null.\nSet both completion queues; they may be one.",
                  attr.send_cq == nullptr ? "send_cq" : "recv_cq");
  }
  const char* foreign = attr.send_cq->context != pd.context                      ? "send_cq"
                        : attr.recv_cq->context != pd.context                    ? "recv_cq"
                        : attr.srq != nullptr && attr.srq->context != pd.context ? "srq"
                                                                                 : nullptr;
  if (foreign != nullptr) {
    return refuse(EINVAL,
                  "%s and the protection domain belong to two open devices.\n"
                  "Make all objects of a queue pair with one ibv_context.",
                  foreign);
  }
  const ibv_qp_cap& cap = attr.cap;
  const DeviceAttributes& most = context_of(pd.context)->attributes();
  const struct {
    const char* member;
    uint32_t asked, granted;
    const char* limit;
  } limits[] = {
      {"max_send_wr", cap.max_send_wr, most.max_qp_wr, "max_qp_wr"},
      {"max_recv_wr", attr.srq == nullptr ? cap.max_recv_wr : 0, most.max_qp_wr, "max_qp_wr"},
      {"max_send_sge", cap.max_send_sge, most.max_send_sge, "max_sge"},
      {"max_recv_sge", attr.srq == nullptr ? cap.max_recv_sge : 0, most.max_recv_sge, "max_sge"},
      {"max_inline_data", cap.max_inline_data, most.max_inline, "the limit of inline data, which no query shows"},
  };
  for (const auto& [member, asked, granted, limit] : limits) {
    if (asked <= granted) continue;
    return refuse(EINVAL, "cap.%s is %u, and the device has at most %u (%s).\nAsk for at most %u.", member, asked,
                  granted, limit, granted);
  }
  return 0;
}

// The way of completions from the engine to a queue, through a trace or a plan of faults if the environment asks for
// one. Null: no memory.
roce::CompletionSink* completion_sink(Qp& qp, Cq& cq, size_t number) {
  roce::CompletionSink* next = cq.stamped != nullptr ? static_cast<roce::CompletionSink*>(cq.stamped.get()) : &cq.queue;
  if (Trace* trace = program_trace(); trace != nullptr) {
    qp.traced_completions[number].reset(new (std::nothrow) TracedCompletions(*trace, cq, *next));
    next = qp.traced_completions[number].get();
  }
  if (FaultPlan* plan = fault_plan(); next != nullptr && plan != nullptr && plan->plans_completions()) {
    qp.planned_completions[number].reset(new (std::nothrow) PlannedCompletions(*plan, *next, qp.events));
    next = qp.planned_completions[number].get();
  }
  return next;
}

// A program with ThreadSanitizer sees both queues as threads of their own: the completion of a Send tells nothing about
// the receives.
void announce(Qp& qp) {
  const roce::Accessor who = {qp.pd->number, qp.qpn};
  char name[64];
  snprintf(name, sizeof name, "QP 0x%x of %.32s", qp.qpn, qp.context->ibv->device->name);
  qp.announced_sends = AnnouncedQueue::make(qp.context->memory, who, name);
  snprintf(name, sizeof name, "receives of QP 0x%x of %.32s", qp.qpn, qp.context->ibv->device->name);
  qp.announced_receives = AnnouncedQueue::make(qp.context->memory, who, name);
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
  const DeviceAttributes& limits = qp.context->attributes();
  const roce::QpConfig config = {
      .qpn = qp.qpn,
      .type = static_cast<roce::QpType>(qp.init.qp_type),
      .domain = qp.pd->number,
      .receive_domain = qp.srq == nullptr ? qp.pd->number : qp.srq->pd->number,
      .send_depth = cap.max_send_wr,
      .max_send_segments = cap.max_send_sge,
      .max_inline = cap.max_inline_data,
      .signal_all = qp.init.sq_sig_all != 0,
      .shared_receives = qp.srq != nullptr,
      .datagram_mtu = roce_mtu_bytes(info.netdev_mtu),
      .max_message = limits.max_msg_sz,
      .refuses_too_long = limits.too_long == kTooLongRefused,
      .has_atomics = limits.atomics != kAtomicsNone,
      .has_flush = (limits.features & kFeatureFlush) != 0,
  };
  ReceiveQueue& receives = qp.srq != nullptr ? qp.srq->queue : qp.own_receives;
  roce::CompletionSink* sent = completion_sink(qp, *qp.send_cq, 0);
  roce::CompletionSink* received = completion_sink(qp, *qp.recv_cq, 1);
  if (sent != nullptr && received != nullptr) {
    roce::Memory* memory = &qp.context->seen_memory();
    roce::EventSink* events = &qp.events;
    qp.events.shows_in(qp.shown, qp.init.qp_type == IBV_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
    explain::explain_qp(qp);
    if (check::Checker* checker = check::Checker::get(); checker != nullptr) {
      qp.checked = std::make_unique<check::CheckedQp>(*checker, qp, *memory, *sent, *received, *events);
      memory = &qp.checked->memory;
      sent = &qp.checked->sent;
      received = &qp.checked->received;
      events = &qp.checked->events;
    }
    qp.engine = roce::QueuePair::create(config, *memory, *sent, *received, receives, *events);
    const bool is_bare = memory == &qp.context->memory && sent == &qp.send_cq->queue && received == &qp.recv_cq->queue;
    if (is_bare && qp.engine != nullptr) qp.bare_connection = qp.engine->reliable_connection();
    if (qp.checked != nullptr) qp.engine = qp.checked->checker.late(std::move(qp.engine));
  }
  if (qp.engine == nullptr) {
    qp.runtime->remove(qp);
    return refuse_memory("send requests");
  }
  announce(qp);
  qp.runtime->open(qp);
  return 0;
}

void publish(Qp& qp, ibv_pd* pd) {
  ibv_qp& shown = qp.abi.qp;
  shown.context = pd->context;
  shown.qp_context = qp.init.qp_context;
  shown.pd = pd;
  shown.send_cq = qp.init.send_cq;
  shown.recv_cq = qp.init.recv_cq;
  shown.srq = qp.init.srq;
  shown.handle = qp.qpn;
  shown.qp_num = qp.qpn;
  shown.state = IBV_QPS_RESET;
  shown.qp_type = qp.init.qp_type;
  pthread_mutex_init(&shown.mutex, nullptr);
  pthread_cond_init(&shown.cond, nullptr);
  qp.context->live_queue_pairs.fetch_add(1);
  qp.pd->users.fetch_add(1);
  qp.send_cq->users.fetch_add(1);
  qp.recv_cq->users.fetch_add(1);
  if (qp.srq != nullptr) qp.srq->users.fetch_add(1);
  const BiasedLock lock(qp.mutex);
  qp.shown = qp.context->resources().add(row_of(qp));
}

ibv_qp* make_qp(ibv_pd* pd, ibv_qp_init_attr& attr, bool extended, uint64_t send_operations) {
  if (!usable(pd->context)) return failed(refuse_child());
  int error = check(*pd, attr);
  if (error != 0) return failed(error);
  CountedObject place = context_of(pd->context)->objects.take(ObjectKind::kQp);
  std::unique_ptr<Qp> qp(place ? new (std::nothrow) Qp : nullptr);
  if (qp == nullptr) return failed(refuse_limit(*context_of(pd->context), ObjectKind::kQp));
  qp->place_in_limit = std::move(place);
  if (attr.srq != nullptr) attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
  const DeviceAttributes& most = context_of(pd->context)->attributes();
  attr.cap.max_send_wr = granted_depth(attr.cap.max_send_wr, most.max_qp_wr);
  attr.cap.max_recv_wr = granted_depth(attr.cap.max_recv_wr, most.max_qp_wr);
  // Like rxe, which keeps inline data in the room for the segments. Some programs use inline data that they did not ask
  // for (rdma_xclient).
  const uint32_t segments = attr.cap.max_send_sge * static_cast<uint32_t>(sizeof(ibv_sge));
  attr.cap.max_inline_data = std::min(std::max(attr.cap.max_inline_data, segments), most.max_inline);
  qp->init = attr;
  qp->context = context_of(pd->context);
  qp->runtime = &qp->context->runtime;
  qp->traffic = &qp->context->traffic;
  qp->pd = ours<Pd>(pd);
  qp->domain = &qp->pd->lowest();
  qp->send_cq = ours<Cq>(attr.send_cq);
  qp->recv_cq = ours<Cq>(attr.recv_cq);
  qp->srq = attr.srq == nullptr ? nullptr : ours<Srq>(attr.srq);
  if (extended) error = publish_qp_ex(*qp, send_operations);
  if (error == 0) error = equip(*qp);
  if (error != 0) return failed(error);
  publish(*qp, pd);
  return &qp.release()->abi.qp;
}

bool has_outstanding_sends(Qp& qp) {
  const BiasedLock lock(qp.mutex);
  return qp.engine->outstanding_sends() != 0;
}

}  // namespace

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  return make_qp(pd, *attr, false, 0);
}

ibv_qp* create_qp_ex(ibv_context*, ibv_qp_init_attr_ex* attr) {
  constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (const uint32_t unknown = attr->comp_mask & ~kKnown; unknown != 0) {
    return failed(
        refuse(EOPNOTSUPP,
               "comp_mask has 0x%x, which the device does not know.\n"
               "Use IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_CREATE_FLAGS and IBV_QP_INIT_ATTR_SEND_OPS_FLAGS at "
               "most.",
               unknown));
  }
  if ((attr->comp_mask & IBV_QP_INIT_ATTR_PD) == 0)
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
  const bool extended = (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  ibv_qp* qp = make_qp(attr->pd, plain, extended, extended ? attr->send_ops_flags : 0);
  if (qp != nullptr) attr->cap = plain.cap;
  return qp;
}

int destroy_qp(ibv_qp* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  if (const uint32_t groups = ours<Qp>(ibv)->multicast_groups.load(); groups != 0) {
    return refuse(EBUSY, "the queue pair is attached to %u multicast groups.\nCall ibv_detach_mcast() for each first.",
                  groups);
  }
  std::unique_ptr<Qp> qp(ours<Qp>(ibv));
  {
    const CancelGuard whole;
    // The peer's last acknowledgements may have arrived already. A NIC has completed their requests then.
    if (has_outstanding_sends(*qp)) qp->runtime->catch_up();
    qp->runtime->remove(*qp);
  }
  qp->context->withdraw(&qp->abi, qp->event_count);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->events_completed, qp->event_count);
  if (qp->srq != nullptr) leave(qp->srq->users);
  leave(qp->recv_cq->users);
  leave(qp->send_cq->users);
  leave(qp->context->live_queue_pairs);
  pthread_cond_destroy(&ibv->cond);
  pthread_mutex_destroy(&ibv->mutex);
  Pd* pd = qp->pd;
  qp.reset();  // a parent domain's functions free its memory
  leave(pd->users);
  return 0;
}

}  // namespace dapple::soft::verbs
