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
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"

namespace dapple::soft::verbs {

ibv_srq* create_srq(ibv_pd* ibv, ibv_srq_init_attr* attr) {
  if (!usable(ibv->context)) return failed(ENODEV);
  const DeviceAttributes& limits = context_of(ibv->context)->attributes();
  if ((limits.features & kFeatureSrq) == 0) return failed(EOPNOTSUPP);
  if (attr->attr.max_wr == 0 || attr->attr.max_wr > limits.max_srq_wr) return failed(EINVAL);
  if (attr->attr.max_sge > limits.max_srq_sge) return failed(EINVAL);
  CountedObject place = context_of(ibv->context)->objects.take(ObjectKind::kSrq);
  Srq* srq = place ? new (std::nothrow) Srq : nullptr;
  if (srq == nullptr) return failed(ENOMEM);
  srq->place_in_limit = std::move(place);
  const uint32_t depth = granted_depth(attr->attr.max_wr, limits.max_srq_wr);
  const int error = srq->queue.initialize(depth, attr->attr.max_sge);
  if (error != 0) {
    delete srq;
    return failed(error);
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
  row.pd = srq->pd->shown.place();
  srq->shown = srq->context->resources().add(row);
  return &srq->abi.srq;
}

int modify_srq(ibv_srq* ibv, ibv_srq_attr* attr, int mask) {
  if (!usable(ibv->context)) return ENODEV;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  Srq* srq = ours<Srq>(ibv);
  const std::optional<uint32_t> limit = (mask & IBV_SRQ_LIMIT) != 0 ? std::optional(attr->srq_limit) : std::nullopt;
  if ((mask & IBV_SRQ_MAX_WR) != 0) {
    const DeviceAttributes& limits = context_of(ibv->context)->attributes();
    if ((limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0) return EINVAL;
    if (attr->max_wr == 0 || attr->max_wr > limits.max_srq_wr) return EINVAL;
    return srq->queue.resize(granted_depth(attr->max_wr, limits.max_srq_wr), limit);
  }
  return limit.has_value() ? srq->queue.set_limit(*limit) : 0;
}

int query_srq(ibv_srq* ibv, ibv_srq_attr* attr) {
  if (!usable(ibv->context)) return ENODEV;
  Srq* srq = ours<Srq>(ibv);
  attr->max_wr = srq->queue.depth();
  attr->max_sge = srq->queue.max_segments();
  attr->srq_limit = srq->queue.limit();
  return 0;
}

int destroy_srq(ibv_srq* ibv) {
  if (!usable(ibv->context)) return ENODEV;
  Srq* srq = ours<Srq>(ibv);
  if (srq->users.load() != 0) return EBUSY;
  srq->context->withdraw(&srq->abi, srq->events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->events_completed, srq->events);
  assert(srq->users.load() == 0);
  leave(srq->pd->users);
  delete srq;
  return 0;
}

template <bool kSanitized>
int post_srq_recv(ibv_srq* ibv, ibv_recv_wr* requests, ibv_recv_wr** bad) {
  if (!usable(ibv->context)) {
    *bad = requests;
    return refused(ENODEV);
  }
  Srq& srq = *ours<Srq>(ibv);
  const int error = post_receives<kSanitized>(srq.queue, srq.announced.get(), requests, bad);
  return error == 0 ? 0 : refused(error);
}
template int post_srq_recv<false>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);
template int post_srq_recv<true>(ibv_srq*, ibv_recv_wr*, ibv_recv_wr**);

// Only XRC names shared receive queues by number.
int get_srq_num(ibv_srq*, uint32_t*) {
  return EOPNOTSUPP;
}

}  // namespace dapple::soft::verbs
