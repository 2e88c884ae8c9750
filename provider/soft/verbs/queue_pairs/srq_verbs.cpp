// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Shared receive queues.
#include <errno.h>
#include <stdio.h>

#include <cassert>
#include <new>
#include <optional>
#include <utility>

#include "provider/soft/explain/requests/explained_operations.hpp"
#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/verbs/queue_pairs/qp_checks.hpp"
#include "provider/soft/verbs/queue_pairs/qp_engine.hpp"
#include "provider/soft/verbs/queue_pairs/tag_srq.hpp"
#include "provider/soft/xrc/xrc_table.hpp"

namespace dapple::soft::verbs {
namespace {

int refuse_depth(uint32_t depth, uint32_t most) {
  return refuse(EINVAL,
                "max_wr is %u, and the device's shared receive queues have 1 to %u places (max_srq_wr).\n"
                "Ask for at least 1 and at most max_srq_wr.",
                depth, most);
}

}  // namespace

ibv_srq* create_srq(ibv_pd* ibv, ibv_srq_init_attr* attr) {
  if (!usable(ibv->context)) return failed(refuse_child());
  const DeviceAttributes& limits = context_of(ibv->context)->attributes();
  if ((limits.features & kFeatureSrq) == 0) {
    return failed(refuse(EOPNOTSUPP,
                         "the device's identity (--as) has no shared receive queues.\n"
                         "Look at max_srq of ibv_query_device() first."));
  }
  if (attr->attr.max_wr == 0 || attr->attr.max_wr > limits.max_srq_wr)
    return failed(refuse_depth(attr->attr.max_wr, limits.max_srq_wr));
  if (attr->attr.max_sge > limits.max_srq_sge) {
    return failed(refuse(EINVAL,
                         "attr.max_sge is %u, and max_srq_sge of the device is %u.\n"
                         "Ask for at most max_srq_sge.",
                         attr->attr.max_sge, limits.max_srq_sge));
  }
  if (const int error = check_lives(ibv); error != 0) return failed(error);
  CountedObject counted_object = context_of(ibv->context)->objects.take(ObjectKind::kSrq);
  Srq* srq = counted_object ? new (std::nothrow) Srq : nullptr;
  if (srq == nullptr) return failed(refuse_limit(*context_of(ibv->context), ObjectKind::kSrq));
  srq->counted_object = std::move(counted_object);
  const uint32_t depth = granted_depth(attr->attr.max_wr, limits.max_srq_wr);
  const int error = srq->queue.initialize(depth, attr->attr.max_sge, &original_of<Pd>(ibv)->allocator);
  if (error != 0) {
    delete srq;
    return failed(error == ENOMEM ? refuse_memory("receives") : refuse_depth(depth, limits.max_srq_wr));
  }
  attr->attr.max_wr = depth;
  srq->context = context_of(ibv->context);
  srq->pd = original_of<Pd>(ibv);
  char name[64];
  snprintf(name, sizeof name, "shared receive queue of %.32s", ibv->context->device->name);
  srq->announced = AnnouncedQueue::make(srq->context->memory, {srq->pd->number, 0}, name);
  srq->pd->users.fetch_add(1);
  srq->abi.srq.context = ibv->context;
  srq->abi.srq.pd = ibv;
  srq->abi.srq_type = IBV_SRQT_BASIC;
  ResourceRow row = srq->context->row_of(ResourceKind::kSrq);
  row.pd = srq->pd->lowest().shown.row_number();
  srq->shown = srq->context->resources().add(row);
  return &srq->abi.srq;
}

int modify_srq(ibv_srq* ibv, ibv_srq_attr* attr, int mask) {
  if (!usable(ibv->context)) return refuse_child();
  if (const int unknown = mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT); unknown != 0) {
    return refuse(EINVAL,
                  "srq_attr_mask has 0x%x, which the device does not know.\n"
                  "Use IBV_SRQ_MAX_WR and IBV_SRQ_LIMIT at most.",
                  static_cast<unsigned>(unknown));
  }
  Srq* srq = ours<Srq>(ibv);
  const std::optional<uint32_t> limit = (mask & IBV_SRQ_LIMIT) != 0 ? std::optional(attr->srq_limit) : std::nullopt;
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    const DeviceAttributes& limits = context_of(ibv->context)->attributes();
    if ((limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0) {
      return refuse(EINVAL,
                    "the device's identity (--as) has shared receive queues of a fixed size.\n"
                    "Look at IBV_DEVICE_SRQ_RESIZE in device_cap_flags first.");
    }
    if (attr->max_wr == 0 || attr->max_wr > limits.max_srq_wr) return refuse_depth(attr->max_wr, limits.max_srq_wr);
    const int error = srq->queue.resize(granted_depth(attr->max_wr, limits.max_srq_wr), limit);
    if (error == ENOMEM) return refuse_memory("receives");
    if (error == 0) return 0;
    return refuse(error,
                  "the new max_wr, %u, is less than the number of receives in the queue or than its srq_limit, "
                  "%u.\nAsk for more room, or set a smaller srq_limit.",
                  attr->max_wr, limit.value_or(srq->queue.limit()));
  }
  if (!limit.has_value()) return 0;
  const int error = srq->queue.set_limit(*limit);
  if (error == 0) return 0;
  return refuse(error, "srq_limit is %u, and the queue has room for %u receives.\nSet srq_limit to at most max_wr.",
                *limit, srq->queue.depth());
}

int query_srq(ibv_srq* ibv, ibv_srq_attr* attr) {
  if (!usable(ibv->context)) return refuse_child();
  Srq* srq = ours<Srq>(ibv);
  attr->max_wr = srq->queue.depth();
  attr->max_sge = srq->queue.max_segments();
  attr->srq_limit = srq->queue.limit();
  return 0;
}

int destroy_srq(ibv_srq* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  Srq* srq = ours<Srq>(ibv);
  if (const uint32_t users = srq->users.load(); users != 0) {
    return refuse(EBUSY, "%u queue pairs take their receives from the queue.\nDestroy these queue pairs first.", users);
  }
  const XrcQueue& xrc = srq->xrc;
  if (xrc.domain != nullptr) srq->context->runtime.xrc().remove(*srq);
  srq->context->withdraw(&srq->abi, srq->events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->events_completed, srq->events);
  assert(srq->users.load() == 0);
  if (xrc.domain != nullptr) {
    leave(xrc.cq->users);
    leave(xrc.xrcd->users);
  }
  if (srq->tags != nullptr) leave(srq->tags->cq.users);
  Pd* pd = srq->pd;
  delete srq;  // a parent domain's functions free its memory
  leave(pd->users);
  return 0;
}

template <Program kProgram>
int post_srq_recv(ibv_srq* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  const auto ends_with = [&](int error) {
    if constexpr (kProgram == Program::kExplained) explain::explain_receives(ibv, error);
    return refused(error);
  };
  if (!usable(ibv->context)) {
    *bad = requests;
    return ends_with(refuse_child());
  }
  Srq& srq = *ours<Srq>(ibv);
  const int error = post_receives<kProgram == Program::kSanitized>(srq.queue, srq.announced.get(), requests, bad);
  return error == 0 ? 0 : ends_with(error);
}
template int post_srq_recv<Program::kPlain>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
template int post_srq_recv<Program::kSanitized>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
template int post_srq_recv<Program::kExplained>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);

namespace {

bool has_type(const ibv_srq_init_attr_ex& attr, ibv_srq_type type) {
  return (attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 && attr.srq_type == type;
}

int check_parts(const ibv_context* context, const ibv_srq_init_attr_ex& attr) {
  constexpr uint32_t kNeeded =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  if (has_type(attr, IBV_SRQT_TM)) return check_tag_srq(context, attr);
  if (!has_type(attr, IBV_SRQT_XRC)) {
    return refuse(EOPNOTSUPP,
                  "srq_type is %d, or comp_mask (0x%x) has bits that the type does not need.\n"
                  "Use IBV_SRQT_BASIC with IBV_SRQ_INIT_ATTR_PD alone, IBV_SRQT_XRC, or IBV_SRQT_TM.",
                  (attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? static_cast<int>(attr.srq_type)
                                                                 : static_cast<int>(IBV_SRQT_BASIC),
                  attr.comp_mask);
  }
  if (const int error = check_xrc(context); error != 0) return error;
  if (attr.comp_mask != kNeeded) {
    return refuse(EINVAL,
                  "comp_mask is 0x%x, and a queue of the type IBV_SRQT_XRC has srq_type, pd, xrcd and cq.\n"
                  "Set these members, and the bits IBV_SRQ_INIT_ATTR_TYPE, _PD, _XRCD and _CQ.",
                  attr.comp_mask);
  }
  // librdmacm's rdma_create_srq() may pass no protection domain.
  const char* null = attr.pd == nullptr ? "pd" : attr.xrcd == nullptr ? "xrcd" : attr.cq == nullptr ? "cq" : nullptr;
  if (null != nullptr)
    return refuse(EINVAL, "%s is null.\nSet pd, xrcd and cq to objects of the same ibv_context.", null);
  const char* foreign = attr.pd->context != context     ? "pd"
                        : attr.xrcd->context != context ? "xrcd"
                        : attr.cq->context != context   ? "cq"
                                                        : nullptr;
  if (foreign == nullptr) return 0;
  return refuse(EINVAL, "%s belongs to another open device.\nMake all objects of the queue with one ibv_context.",
                foreign);
}

// False: no memory, or no number.
bool join_domain(Srq& srq, const ibv_srq_init_attr_ex& attr) {
  srq.xrc.xrcd = ours<Xrcd>(attr.xrcd);
  srq.xrc.cq = ours<Cq>(attr.cq);
  srq.xrc.completions = traced_way(*srq.xrc.cq, srq.xrc.traced);
  if (srq.xrc.completions == nullptr) return false;
  srq.xrc.memory = &srq.context->seen_memory();
  srq.xrc.domain = srq.xrc.xrcd->domain;
  if (!srq.context->runtime.xrc().add(srq)) {
    srq.xrc.domain = nullptr;
    return false;
  }
  assert(srq.xrc.number != 0 && srq.xrc.memory != nullptr);
  srq.xrc.xrcd->users.fetch_add(1);
  srq.xrc.cq->users.fetch_add(1);
  return true;
}

}  // namespace

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  if (!usable(context)) return failed(refuse_child());
  if (const int error = check_parts(context, *attr); error != 0) return failed(error);
  ibv_srq_init_attr plain = {.srq_context = attr->srq_context, .attr = attr->attr};
  ibv_srq* made = create_srq(attr->pd, &plain);
  if (made == nullptr) return nullptr;
  Srq& srq = *ours<Srq>(made);
  // libibverbs does this for ibv_create_srq().
  made->srq_context = attr->srq_context;
  pthread_mutex_init(&made->mutex, nullptr);
  pthread_cond_init(&made->cond, nullptr);
  if (has_type(*attr, IBV_SRQT_TM)) {
    if (const int error = join_tags(srq, *attr); error != 0) {
      destroy_srq(made);
      return failed(error);
    }
    attr->attr = plain.attr;
    srq.abi.srq_type = IBV_SRQT_TM;
    srq.abi.cq = attr->cq;
    return made;
  }
  if (!join_domain(srq, *attr)) {
    destroy_srq(made);
    return failed(refuse_memory("shared receive queues of XRC domains, or their numbers are all taken"));
  }
  attr->attr = plain.attr;
  srq.abi.srq_type = IBV_SRQT_XRC;
  srq.abi.xrcd = attr->xrcd;
  srq.abi.cq = attr->cq;
  srq.abi.srq_num = srq.xrc.number;
  return made;
}

int get_srq_num(ibv_srq* ibv, uint32_t* number) {
  const XrcQueue& xrc = ours<Srq>(ibv)->xrc;
  if (xrc.domain == nullptr) {  // EOPNOTSUPP as Mellanox' devices
    return refuse(EOPNOTSUPP,
                  "the shared receive queue has the type IBV_SRQT_BASIC, and only those of XRC have numbers.\n"
                  "Make the queue by ibv_create_srq_ex() with IBV_SRQT_XRC.");
  }
  *number = xrc.number;
  return 0;
}

}  // namespace dapple::soft::verbs
