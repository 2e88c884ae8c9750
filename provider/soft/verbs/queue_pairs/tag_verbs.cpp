// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Shared receive queues that match tags, and the operations on their lists.
#include <errno.h>

#include <cassert>
#include <mutex>
#include <span>

#include "provider/soft/objects/granted_depth.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/engines.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/tag_matching/tag_objects.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "provider/soft/verbs/queue_pairs/qp_engine.hpp"
#include "provider/soft/verbs/queue_pairs/tag_srq.hpp"

namespace dapple::soft::verbs {

int check_tag_srq(const ibv_context* context, const ibv_srq_init_attr_ex& attr) {
  constexpr uint32_t kNeeded =
      IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
  if ((context_of(context)->attributes().features & kFeatureTagMatching) == 0) {
    return refuse(EOPNOTSUPP,
                  "the device's identity (--as) matches no tags.\n"
                  "Look at IBV_TM_CAP_RC in tm_caps.flags of ibv_query_device_ex() first.");
  }
  if (attr.comp_mask != kNeeded) {
    return refuse(EINVAL,
                  "comp_mask is 0x%x, and a queue of the type IBV_SRQT_TM has srq_type, pd, cq and tm_cap.\n"
                  "Set these members, and the bits IBV_SRQ_INIT_ATTR_TYPE, _PD, _CQ and _TM.",
                  attr.comp_mask);
  }
  const char* null = attr.pd == nullptr ? "pd" : attr.cq == nullptr ? "cq" : nullptr;
  if (null != nullptr) return refuse(EINVAL, "%s is null.\nSet pd and cq to objects of the same ibv_context.", null);
  const char* foreign = attr.pd->context != context ? "pd" : attr.cq->context != context ? "cq" : nullptr;
  if (foreign != nullptr) {
    return refuse(EINVAL, "%s belongs to another open device.\nMake all objects of the queue with one ibv_context.",
                  foreign);
  }
  // As mlx5: without one the program could not read the tags.
  if (ours<Cq>(attr.cq)->abi.cq_ex.start_poll == nullptr) {
    return refuse(EINVAL,
                  "cq was made by ibv_create_cq(), and shows no tags.\n"
                  "Make it by ibv_create_cq_ex(), with IBV_WC_EX_WITH_TM_INFO in wc_flags.");
  }
  const ibv_tm_cap& cap = attr.tm_cap;
  if (cap.max_num_tags == 0 || cap.max_num_tags > kMaxTags) {
    return refuse(EINVAL,
                  "tm_cap.max_num_tags is %u, and a list has 1 to %u tags.\n"
                  "Ask for at most tm_caps.max_num_tags of ibv_query_device_ex().",
                  cap.max_num_tags, kMaxTags);
  }
  if (cap.max_ops != 0 && cap.max_ops <= kMaxTagOperations) return 0;
  return refuse(EINVAL,
                "tm_cap.max_ops is %u, and a list has room for 1 to %u operations.\n"
                "Ask for at most tm_caps.max_ops of ibv_query_device_ex().",
                cap.max_ops, kMaxTagOperations);
}

int join_tags(Srq& srq, const ibv_srq_init_attr_ex& attr) {
  assert(srq.tags == nullptr);
  const ibv_tm_cap granted = {.max_num_tags = attr.tm_cap.max_num_tags,
                              .max_ops = granted_depth(attr.tm_cap.max_ops, kMaxTagOperations)};
  int error = 0;
  Cq& cq = *ours<Cq>(attr.cq);
  srq.tags = make_tag_srq(cq, granted, error);
  if (srq.tags != nullptr) srq.tags->completions = traced_way(cq, srq.tags->traced);
  if (srq.tags == nullptr || srq.tags->completions == nullptr) {
    srq.tags.reset();
    return refuse_memory("lists of tags");
  }
  cq.users.fetch_add(1);
  return 0;
}

namespace {

void complete(TagSrq& tags, const ibv_ops_wr& wr, roce::CompletionOpcode opcode, bool is_good) {
  const bool is_signaled = (wr.flags & IBV_OPS_SIGNALED) != 0;
  if (is_signaled) {
    roce::Completion done;
    done.request_id = wr.wr_id;
    done.opcode = opcode;
    if (!is_good) done.status = roce::CompletionStatus::kTagError;
    if (!tags.list.is_in_step()) done.flags = roce::kTagSyncWanted;
    tags.completions->complete(done);
  }
  tags.operations.add(tags.cq.queue, is_signaled);
}

int refuse_tag_segments(int count) {
  return refuse(EINVAL,
                "tm.add.num_sge is %d, and a tag has 0 to %u segments.\n"
                "Use at most tm_caps.max_sge of ibv_query_device_ex().",
                count, kMaxTagSegments);
}

void tell_read(TagList& list, const ibv_ops_wr& wr) {
  if ((wr.flags & IBV_OPS_TM_SYNC) != 0) list.tell_read(wr.tm.unexpected_cnt);
}

int add(Srq& srq, ibv_ops_wr& wr) {
  std::span<const roce::Segment> segments;
  const bool has_segments = segments_of(wr.tm.add.sg_list, wr.tm.add.num_sge, segments);
  if (!has_segments || segments.size() > kMaxTagSegments) return refuse_tag_segments(wr.tm.add.num_sge);
  TagList& list = srq.tags->list;
  if (list.is_full()) {
    return refuse(ENOMEM,
                  "all %u tags of the list (tm_cap.max_num_tags) are in use.\n"
                  "Wait for messages that match, or remove tags by IBV_WR_TAG_DEL.",
                  list.max_tags());
  }
  tell_read(list, wr);
  const NewTag made = {.id = wr.tm.add.recv_wr_id,
                       .tag = wr.tm.add.tag,
                       .mask = wr.tm.add.mask,
                       .segments = segments,
                       .mark = srq.announced == nullptr ? uint16_t{0} : srq.announced->post(segments, true)};
  wr.tm.handle = list.add(made);
  complete(*srq.tags, wr, roce::CompletionOpcode::kTagAdd, true);
  return 0;
}

int remove(TagSrq& tags, const ibv_ops_wr& wr) {
  if (!tags.list.is_handle(wr.tm.handle)) {
    return refuse(EINVAL,
                  "tm.handle is 0x%x, which no tag of the list can have.\n"
                  "Pass the handle that IBV_WR_TAG_ADD has given to the tag.",
                  wr.tm.handle);
  }
  tell_read(tags.list, wr);
  const bool is_removed = tags.list.remove(wr.tm.handle);
  if (is_removed && tags.watch != nullptr) tags.watch->removed(wr.tm.handle);
  complete(tags, wr, roce::CompletionOpcode::kTagDelete, is_removed);
  return 0;
}

int execute(Srq& srq, ibv_ops_wr& wr) {
  TagSrq& tags = *srq.tags;
  if (!tags.operations.has_room(tags.cq.queue)) {
    return refuse(ENOMEM,
                  "%u operations on the tags are outstanding (tm_cap.max_ops).\n"
                  "Set IBV_OPS_SIGNALED now and then, and poll the completions of operations before further posts.",
                  tags.operations.depth());
  }
  switch (wr.opcode) {
    case IBV_WR_TAG_ADD:
      return add(srq, wr);
    case IBV_WR_TAG_DEL:
      return remove(tags, wr);
    case IBV_WR_TAG_SYNC:
      tell_read(tags.list, wr);
      complete(tags, wr, roce::CompletionOpcode::kTagSync, true);
      return 0;
    default:
      return refuse(EINVAL, "opcode is %d.\nUse IBV_WR_TAG_ADD, IBV_WR_TAG_DEL or IBV_WR_TAG_SYNC.",
                    static_cast<int>(wr.opcode));
  }
}

}  // namespace

int post_srq_ops(ibv_srq* ibv, ibv_ops_wr* operations, ibv_ops_wr** bad) {
  if (!usable(ibv->context)) {
    *bad = operations;
    return refuse_child();
  }
  Srq& srq = *ours<Srq>(ibv);
  if (srq.tags == nullptr) {
    *bad = operations;
    return refuse(EINVAL,
                  "the shared receive queue has no list of tags.\n"
                  "Make the queue by ibv_create_srq_ex() with IBV_SRQT_TM.");
  }
  int error = 0;
  {
    const std::lock_guard lock(srq.tags->list.mutex);
    for (ibv_ops_wr* wr = operations; wr != nullptr && error == 0; wr = wr->next) {
      error = execute(srq, *wr);
      if (error != 0) *bad = wr;
    }
  }
  if (srq.tags->cq.queue.has_notice()) {
    srq.context->runtime.engines().tell_of_completions(srq.tags->cq);
    srq.context->runtime.engines().wake_if_due();
  }
  return error;
}

}  // namespace dapple::soft::verbs
