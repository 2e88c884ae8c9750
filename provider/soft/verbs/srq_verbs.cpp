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

#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"

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
  CountedObject place = context_of(ibv->context)->objects.take(ObjectKind::kSrq);
  Srq* srq = place ? new (std::nothrow) Srq : nullptr;
  if (srq == nullptr) return failed(refuse_limit(*context_of(ibv->context), ObjectKind::kSrq));
  srq->place_in_limit = std::move(place);
  const uint32_t depth = granted_depth(attr->attr.max_wr, limits.max_srq_wr);
  const int error = srq->queue.initialize(depth, attr->attr.max_sge, &ours<Pd>(ibv)->allocator);
  if (error != 0) {
    delete srq;
    return failed(error == ENOMEM ? refuse_memory("receives") : refuse_depth(depth, limits.max_srq_wr));
  }
  attr->attr.max_wr = depth;
  srq->context = context_of(ibv->context);
  srq->pd = ours<Pd>(ibv);
  char name[64];
  snprintf(name, sizeof name, "shared receive queue of %.32s", ibv->context->device->name);
  srq->announced = AnnouncedQueue::make(srq->context->memory, {srq->pd->number, 0}, name);
  srq->pd->users.fetch_add(1);
  srq->abi.srq.context = ibv->context;
  srq->abi.srq.pd = ibv;
  srq->abi.srq_type = IBV_SRQT_BASIC;
  ResourceRow row = srq->context->row_of(ResourceKind::kSrq);
  row.pd = srq->pd->lowest().shown.place();
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
  srq->context->withdraw(&srq->abi, srq->events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->events_completed, srq->events);
  assert(srq->users.load() == 0);
  Pd* pd = srq->pd;
  delete srq;  // a parent domain's functions free its memory
  leave(pd->users);
  return 0;
}

template <bool kSanitized>
int post_srq_recv(ibv_srq* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  if (!usable(ibv->context)) {
    *bad = requests;
    return refused(refuse_child());
  }
  Srq& srq = *ours<Srq>(ibv);
  const int error = post_receives<kSanitized>(srq.queue, srq.announced.get(), requests, bad);
  return error == 0 ? 0 : refused(error);
}
template int post_srq_recv<false>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
template int post_srq_recv<true>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);

// Only XRC names shared receive queues by number.
int get_srq_num(ibv_srq*, uint32_t*) {
  return refuse(EOPNOTSUPP, "the device has no XRC.\nUse a shared receive queue of the type IBV_SRQT_BASIC.");
}

}  // namespace dapple::soft::verbs
