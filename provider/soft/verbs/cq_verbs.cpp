// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completion queues.
#include <errno.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/soft/explain/requests/explained_operations.hpp"
#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/extended_cq.hpp"

namespace dapple::soft::verbs {
namespace {

ResourceRow row_of(const Cq& cq) {
  ResourceRow row = cq.context->row_of(ResourceKind::kCq);
  row.number = static_cast<uint32_t>(cq.abi.cq.cqe);
  return row;
}

int refuse_depth(int64_t cqe, uint32_t most) {
  return refuse(EINVAL,
                "cqe is %lld, and the device's completion queues have 1 to %u places (max_cqe).\n"
                "Ask for room for all requests that may complete before the next poll, but not more than max_cqe.",
                static_cast<long long>(cqe), most);
}

// As in the kernel, the contexts of one open file share their channels.
bool is_of_same_file(const ibv_comp_channel& channel, const ibv_context* ibv) {
  return channel_writer(&channel) >= 0 && &context_of(channel.context)->file == &context_of(ibv)->file;
}

Cq* make_cq(ibv_context* ibv, int64_t cqe, const ibv_comp_channel* channel, int vector, Pd* pd) {
  if (!usable(ibv)) return failed(refuse_child());
  const uint32_t most = context_of(ibv)->attributes().max_cqe;
  if (cqe <= 0 || cqe > most) return failed(refuse_depth(cqe, most));
  if (vector < 0 || vector >= ibv->num_comp_vectors) {
    return failed(refuse(EINVAL,
                         "comp_vector is %d, and num_comp_vectors of the device is %d.\n"
                         "Pass a number from 0 to %d.",
                         vector, ibv->num_comp_vectors, ibv->num_comp_vectors - 1));
  }
  if (channel != nullptr && !is_of_same_file(*channel, ibv)) {
    return failed(refuse(EBADF,
                         "the completion channel is not one that ibv_create_comp_channel() has made for this "
                         "device.\nMake the channel with the same ibv_context, or with one that imports the same "
                         "device."));
  }
  CountedObject counted_object = context_of(ibv)->objects.take(ObjectKind::kCq);
  Cq* cq = counted_object ? new (std::nothrow) Cq : nullptr;
  if (cq == nullptr) return failed(refuse_limit(*context_of(ibv), ObjectKind::kCq));
  cq->counted_object = std::move(counted_object);
  const uint32_t size = granted_depth(static_cast<uint32_t>(cqe), most);
  const int error = cq->queue.initialize(size, pd == nullptr ? nullptr : &pd->allocator);
  if (error != 0) {
    delete cq;
    return failed(error == ENOMEM ? refuse_memory("completions") : refuse_depth(cqe, most));
  }
  assert(cq->queue.size() >= static_cast<uint64_t>(cqe) && cq->queue.empty());
  cq->context = context_of(ibv);
  cq->context->live_objects.fetch_add(1);
  cq->pd = pd;
  if (pd != nullptr) pd->users.fetch_add(1);
  cq->abi.cq.context = ibv;
  cq->abi.cq.cqe = static_cast<int>(size);
  cq->shown = cq->context->resources().add(row_of(*cq));
  return cq;
}

int refuse_count(int count) {
  return refuse(EINVAL, "num_entries is %d.\nPass the number of elements of the array of completions.", count);
}

bool keep_stamps(Cq& cq, uint64_t flags) {
  const StampClocks clocks = {
      .raw = (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0,
      .wall = (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0,
  };
  cq.stamped.reset(new (std::nothrow) StampedCompletions(cq.queue, clocks));
  return cq.stamped != nullptr && cq.queue.keep_stamps() == 0;
}

}  // namespace

ibv_cq* create_cq(ibv_context* context, int cqe, ibv_comp_channel* channel, int vector) {
  Cq* cq = make_cq(context, cqe, channel, vector, nullptr);
  return cq == nullptr ? nullptr : &cq->abi.cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  constexpr uint32_t kKnownMask = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  if (const uint32_t unknown = attr->comp_mask & ~kKnownMask; unknown != 0) {
    return failed(
        refuse(EINVAL, "comp_mask has 0x%x, which the device does not know.\nLeave these bits out.", unknown));
  }
  constexpr uint64_t kStamps = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  constexpr uint64_t kTags = IBV_WC_EX_WITH_TM_INFO;
  const uint64_t stamps = attr->wc_flags & kStamps;
  const bool shows_tags = (attr->wc_flags & kTags) != 0;
  if (const uint64_t lacking = attr->wc_flags & ~(uint64_t{IBV_WC_STANDARD_FLAGS} | kStamps | kTags); lacking != 0) {
    return failed(refuse(EOPNOTSUPP,
                         "wc_flags has 0x%llx, and the device has no VLAN tags, flow tags and the like.\n"
                         "Ask for IBV_WC_STANDARD_FLAGS, time stamps and IBV_WC_EX_WITH_TM_INFO at most.",
                         static_cast<unsigned long long>(lacking)));
  }
  if (shows_tags && (context_of(context)->attributes().features & kFeatureTagMatching) == 0) {
    return failed(refuse(EOPNOTSUPP,
                         "the device's identity (--as) matches no tags.\n"
                         "Look at IBV_TM_CAP_RC in tm_caps.flags of ibv_query_device_ex() first."));
  }
  if (stamps != 0 && (context_of(context)->attributes().features & kFeatureTimeStamps) == 0) {
    return failed(refuse(EOPNOTSUPP,
                         "the device's identity (--as) has no time stamps.\n"
                         "Look at completion_timestamp_mask of ibv_query_device_ex() first."));
  }
  const uint32_t flags = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : 0;
  if (const uint32_t unknown =
          flags & ~uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN};
      unknown != 0) {
    return failed(refuse(EINVAL,
                         "flags has 0x%x, which the device does not know.\n"
                         "Use IBV_CREATE_CQ_ATTR_SINGLE_THREADED and IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN at most.",
                         unknown));
  }
  Pd* pd = nullptr;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    pd = ours<Pd>(attr->parent_domain);
    if (pd == nullptr || pd->below == nullptr || pd->ibv.context != context) {
      return failed(refuse(EINVAL,
                           "parent_domain is null, an ordinary protection domain, or another device's.\n"
                           "Pass what ibv_alloc_parent_domain() has returned for the same ibv_context."));
    }
  }
  Cq* cq = make_cq(context, attr->cqe, attr->channel, static_cast<int>(attr->comp_vector), pd);
  if (cq == nullptr) return nullptr;
  if ((stamps != 0 || shows_tags) && !keep_stamps(*cq, stamps)) {
    destroy_cq(&cq->abi.cq);
    return failed(refuse_memory("time stamps and tags"));
  }
  const bool in_thread = pd != nullptr && pd->is_single_threaded();
  cq->single_threaded = in_thread || (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  if ((flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN) != 0) cq->queue.ignore_overruns();
  publish_cq_ex(*cq);
  return &cq->abi.cq_ex;
}

int destroy_cq(ibv_cq* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  Cq* cq = ours<Cq>(ibv);
  if (const uint32_t users = cq->users.load(); users != 0) {
    return refuse(EBUSY,
                  "queue pairs use the completion queue, as send_cq or recv_cq, or shared receive queues, in %u "
                  "places.\nDestroy these objects first.",
                  users);
  }
  Context& context = *cq->context;
  context.runtime.engines().held_events.remove(*cq);
  if (ibv->channel != nullptr) {
    context.file.channels.remove(ibv->channel->fd, channel_writer(ibv->channel), sizeof(CompletionMessage),
                                 reinterpret_cast<uintptr_t>(&cq->abi), cq->completion_events);
  }
  context.withdraw(&cq->abi, cq->asynchronous_events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->comp_events_completed, cq->completion_events);
  wait_for_acknowledgements(ibv->mutex, ibv->cond, ibv->async_events_completed, cq->asynchronous_events);
  assert(cq->users.load() == 0 && !cq->holds_event);
  Pd* pd = cq->pd;
  delete cq;  // the parent domain's functions free its memory
  if (pd != nullptr) leave(pd->users);
  leave(context.live_objects);
  return 0;
}

int resize_cq(ibv_cq* ibv, int cqe) {
  if (!usable(ibv->context)) return refuse_child();
  const DeviceAttributes& limits = context_of(ibv->context)->attributes();
  if ((limits.features & kFeatureResizeCq) == 0) {
    return refuse(EOPNOTSUPP,
                  "the device's identity (--as) has no ibv_resize_cq().\n"
                  "Make the completion queue large enough at once.");
  }
  if (cqe <= 0 || static_cast<uint32_t>(cqe) > limits.max_cqe) return refuse_depth(cqe, limits.max_cqe);
  const uint32_t size = granted_depth(static_cast<uint32_t>(cqe), limits.max_cqe);
  const int error = ours<Cq>(ibv)->queue.resize(size);
  if (error == ENOMEM) return refuse_memory("completions");
  if (error != 0) {
    return refuse(error, "more than %u completions wait in the queue.\nPoll them before the queue gets smaller.", size);
  }
  ibv->cqe = static_cast<int>(size);
  Cq* cq = ours<Cq>(ibv);
  cq->shown.show(row_of(*cq));
  return 0;
}

// As on Mellanox' devices, either of the two at 0 ends the moderation.
int modify_cq(ibv_cq* ibv, ibv_modify_cq_attr* attr) {
  if (!usable(ibv->context)) return refuse_child();
  if (attr->attr_mask != IBV_CQ_ATTR_MODERATE) {
    return refuse(EINVAL, "attr_mask is 0x%x.\nSet attr_mask to IBV_CQ_ATTR_MODERATE, and both fields of moderate.",
                  attr->attr_mask);
  }
  Cq* cq = ours<Cq>(ibv);
  const bool moderates = attr->moderate.cq_count > 1 && attr->moderate.cq_period != 0;
  cq->moderation_us.store(attr->moderate.cq_period, std::memory_order_relaxed);
  if (cq->queue.moderate(moderates ? attr->moderate.cq_count : 0)) tell_of_event(*cq);
  return 0;
}

template <Program kProgram>
int poll_cq(ibv_cq* ibv, int count, ibv_wc* completions) {
  const auto ends_with = [&](int error) {
    if constexpr (kProgram == Program::kExplained) explain::explain_poll(ibv, -error, nullptr);
    return -refused(error);
  };
  Cq* cq = ours<Cq>(ibv);
  if (count <= 0) return count < 0 ? ends_with(refuse_count(count)) : 0;
  // In a child of fork() the completions are the parent's.
  if (!usable(ibv->context)) return ends_with(refuse_child());
  if (cq->queue.empty()) {
    cq->context->runtime.poll();
    if (cq->queue.empty()) return 0;
  }
  bool has_failed = false;
  const auto show_one = [&](const roce::Completion& taken, uint32_t i) {
    if (kProgram == Program::kSanitized && taken.mark != 0) AnnouncedQueue::polled(taken);
    if (kProgram == Program::kExplained && taken.status != roce::CompletionStatus::kSuccess) has_failed = true;
    show(taken, completions[i]);
  };
  const auto polled = static_cast<int>(cq->queue.take(static_cast<uint32_t>(count), show_one));
  if (kProgram == Program::kExplained && has_failed) [[unlikely]]
    explain::explain_poll(ibv, polled, completions);
  return polled;
}
template int poll_cq<Program::kPlain>(ibv_cq*, int, ibv_wc*);
template int poll_cq<Program::kSanitized>(ibv_cq*, int, ibv_wc*);
template int poll_cq<Program::kExplained>(ibv_cq*, int, ibv_wc*);

int req_notify_cq(ibv_cq* ibv, int solicited_only) {
  if (!usable(ibv->context)) return refused(refuse_child());
  Cq* cq = ours<Cq>(ibv);
  cq->queue.request_notification(solicited_only != 0);
  cq->context->runtime.expect_no_polls();
  return 0;
}

}  // namespace dapple::soft::verbs
