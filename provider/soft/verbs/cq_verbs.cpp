// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completion queues.
#include <errno.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/extended_cq.hpp"

namespace dapple::soft::verbs {
namespace {

ResourceRow row_of(const Cq& cq) {
  ResourceRow row = cq.context->row_of(ResourceKind::kCq);
  row.number = static_cast<uint32_t>(cq.abi.cq.cqe);
  return row;
}

Cq* make_cq(ibv_context* ibv, int64_t cqe, const ibv_comp_channel* channel, int vector) {
  if (!usable(ibv)) return failed(ENODEV);
  const uint32_t most = context_of(ibv)->attributes().max_cqe;
  if (cqe <= 0 || cqe > most || vector < 0 || vector >= ibv->num_comp_vectors) return failed(EINVAL);
  if (channel != nullptr && channel_writer(channel) < 0) return failed(EINVAL);
  CountedObject place = context_of(ibv)->objects.take(ObjectKind::kCq);
  Cq* cq = place ? new (std::nothrow) Cq : nullptr;
  if (cq == nullptr) return failed(ENOMEM);
  cq->place_in_limit = std::move(place);
  const uint32_t size = granted_depth(static_cast<uint32_t>(cqe), most);
  const int error = cq->queue.initialize(size);
  if (error != 0) {
    delete cq;
    return failed(error);
  }
  cq->context = context_of(ibv);
  cq->context->live_objects.fetch_add(1);
  cq->abi.cq.context = ibv;
  cq->abi.cq.cqe = static_cast<int>(size);
  cq->shown = cq->context->resources().add(row_of(*cq));
  return cq;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector) {
  Cq* cq = make_cq(context, cqe, channel, vector);
  return cq == nullptr ? nullptr : &cq->abi.cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  constexpr uint32_t kKnownMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if ((attr->comp_mask & ~kKnownMask) != 0) return failed(EINVAL);
  // The device has no time stamps, VLAN tags and the like.
  if ((attr->wc_flags & ~uint64_t{IBV_WC_STANDARD_FLAGS}) != 0) return failed(EOPNOTSUPP);
  const uint32_t flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  if ((flags & ~uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN}) != 0)
    return failed(EINVAL);
  Cq* cq = make_cq(context, attr->cqe, attr->channel, static_cast<int>(attr->comp_vector));
  if (cq == nullptr) return nullptr;
  cq->single_threaded = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  cq->ignores_overrun = (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0;
  publish_cq_ex(*cq);
  return &cq->abi.cq_ex;
}

int destroy_cq(ibv_cq* ibv) {
  if (!usable(ibv->context)) return ENODEV;
  Cq* cq = ours<Cq>(ibv);
  if (cq->users.load() != 0) return EBUSY;
  Context& context = *cq->context;
  if (ibv->channel != nullptr) {
    context.pipes.remove(ibv->channel->fd, channel_writer(ibv->channel), sizeof(CompletionMessage),
                         reinterpret_cast<uintptr_t>(&cq->abi), cq->completion_events);
  }
  context.withdraw(&cq->abi, cq->asynchronous_events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->comp_events_completed, cq->completion_events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->async_events_completed, cq->asynchronous_events);
  assert(cq->users.load() == 0);
  delete cq;
  leave(context.live_objects);
  return 0;
}

int resize_cq(ibv_cq* ibv, int cqe) {
  if (!usable(ibv->context)) return ENODEV;
  const DeviceAttributes& limits = context_of(ibv->context)->attributes();
  if ((limits.features & kFeatureResizeCq) == 0) return EOPNOTSUPP;
  if (cqe <= 0 || static_cast<uint32_t>(cqe) > limits.max_cqe) return EINVAL;
  const uint32_t size = granted_depth(static_cast<uint32_t>(cqe), limits.max_cqe);
  const int error = ours<Cq>(ibv)->queue.resize(size);
  if (error != 0) return error;
  ibv->cqe = static_cast<int>(size);
  Cq* cq = ours<Cq>(ibv);
  cq->shown.show(row_of(*cq));
  return 0;
}

template <bool kSanitized>
int poll_cq(ibv_cq* ibv, int count, ibv_wc* completions) {
  Cq* cq = ours<Cq>(ibv);
  if (count <= 0) return count < 0 ? -refused(EINVAL) : 0;
  // In a child of fork() the completions are the parent's.
  if (!usable(ibv->context)) return -refused(ENODEV);
  if (cq->queue.empty()) {
    cq->context->runtime.poll();
    if (cq->queue.empty()) return 0;
  }
  const auto show_one = [&](const roce::Completion& taken, uint32_t i) {
    if (kSanitized && taken.mark != 0) AnnouncedQueue::polled(taken);
    show(taken, completions[i]);
  };
  return static_cast<int>(cq->queue.take(static_cast<uint32_t>(count), show_one));
}
template int poll_cq<false>(ibv_cq*, int, ibv_wc*);
template int poll_cq<true>(ibv_cq*, int, ibv_wc*);

int req_notify_cq(ibv_cq* ibv, int solicited_only) {
  if (!usable(ibv->context)) return refused(ENODEV);
  Cq* cq = ours<Cq>(ibv);
  cq->queue.request_notification(solicited_only != 0);
  cq->context->runtime.expect_no_polls();
  return 0;
}

}  // namespace dapple::soft::verbs
