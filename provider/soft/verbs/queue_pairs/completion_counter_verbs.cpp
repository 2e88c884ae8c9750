// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Completion counters, which libibverbs has since 65. They count requests that end, with or without a completion.
#include <errno.h>
#include <string.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/sanitizers/thread_sanitizer.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/xrc_handles.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::verbs {
namespace {

// 0, or the error of a device without counters.
int check_counters(ibv_context* ibv) {
  if (!usable(ibv)) return refuse_child();
  if ((context_of(ibv)->attributes().features & kFeatureCompletionCounters) == 0) {
    return refuse(EOPNOTSUPP,
                  "the device's identity (--as) has no completion counters.\n"
                  "Look at ibv_query_comp_cntr_caps() first.");
  }
  if (ThreadSanitizer::of_program() != nullptr) {
    return refuse(EOPNOTSUPP,
                  "ThreadSanitizer learns the order of accesses from completions, and not from counters.\n"
                  "Use completion queues in builds with -fsanitize=thread.");
  }
  if (const check::Checker* checker = check::Checker::get(); checker != nullptr && checker->races != nullptr) {
    return refuse(EOPNOTSUPP,
                  "the check for races learns the order of accesses from completions, and not from counters.\n"
                  "Use completion queues under dapple-run --check=races.");
  }
  return 0;
}

int read(provider::CompletionCounter* ibv, const std::atomic<uint64_t>& count, uint64_t* value) {
  if (!usable(ibv->context)) return refuse_child();
  // Nobody may poll: then this call lets the device work.
  context_of(ibv->context)->runtime.poll();
  *value = count.load(std::memory_order_acquire);
  return 0;
}

int change(provider::CompletionCounter* ibv, std::atomic<uint64_t>& count, uint64_t value, bool adds) {
  if (!usable(ibv->context)) return refuse_child();
  if (adds) {
    count.fetch_add(value);
  } else {
    count.store(value);
  }
  return 0;
}

}  // namespace

int query_comp_cntr_caps(ibv_context* ibv, provider::CompletionCounterCaps* caps, size_t caps_size) {
  if (const int error = check_counters(ibv); error != 0) return error;
  const provider::CompletionCounterCaps ours = {
      .max_value = UINT64_MAX,
      .max_counters = most_objects(ObjectKind::kCompletionCounter),
      .supported_qp_attach_ops = provider::kCountedOperations,
  };
  memset(caps, 0, caps_size);
  memcpy(caps, &ours, std::min(caps_size, sizeof ours));
  return 0;
}

provider::CompletionCounter* create_comp_cntr(ibv_context* ibv, provider::CompletionCounterInitAttr* attr) {
  if (const int error = check_counters(ibv); error != 0) return failed(error);
  if (attr->comp_mask != 0 || attr->flags != 0) {
    return failed(refuse(EINVAL, "comp_mask is 0x%x and flags 0x%x.\nSet both to 0.", attr->comp_mask, attr->flags));
  }
  if (attr->type != provider::kCountRequests && attr->type != provider::kCountBytes) {
    return failed(refuse(ENOTSUP, "type is %u.\nUse IBV_COMP_CNTR_TYPE_WRS or IBV_COMP_CNTR_TYPE_BYTES.", attr->type));
  }
  Context& context = *context_of(ibv);
  CountedObject counted_object = context.objects.take(ObjectKind::kCompletionCounter);
  auto* counter = counted_object ? new (std::nothrow) CountedCompletions : nullptr;
  if (counter == nullptr) return failed(refuse_limit(context, ObjectKind::kCompletionCounter));
  counter->counted_object = std::move(counted_object);
  counter->counts_bytes = attr->type == provider::kCountBytes;
  counter->ibv.context = ibv;
  counter->ibv.handle = context.next_counter.fetch_add(1);
  context.live_objects.fetch_add(1);
  return &counter->ibv;
}

int destroy_comp_cntr(provider::CompletionCounter* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  auto* counter = ours<CountedCompletions>(ibv);
  if (const uint32_t users = counter->users.load(); users != 0) {
    return refuse(EBUSY, "the counter is attached %u times to queue pairs.\nDestroy the queue pairs first.", users);
  }
  leave(context_of(ibv->context)->live_objects);
  delete counter;
  return 0;
}

int qp_attach_comp_cntr(ibv_qp* ibv, provider::CompletionCounter* counter,
                        provider::CompletionCounterAttachAttr* attr) {
  if (!usable(ibv->context)) return refuse_child();
  if (attr->comp_mask != 0) return refuse(EINVAL, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr->comp_mask);
  if (const uint32_t unknown = attr->op_mask & ~provider::kCountedOperations; unknown != 0) {
    return refuse(ENOTSUP,
                  "op_mask has 0x%x, which the device does not know.\n"
                  "Look at supported_qp_attach_ops of ibv_query_comp_cntr_caps().",
                  unknown);
  }
  if (attr->op_mask == 0)
    return refuse(EINVAL, "op_mask is 0.\nSet IBV_QP_ATTACH_COMP_CNTR_OP_SEND, or others of its kind.");
  if (counter->context != ibv->context) {
    return refuse(EINVAL,
                  "the counter belongs to another ibv_context than the queue pair.\n"
                  "Use objects of one ibv_context together.");
  }
  const CancelGuard whole;
  Qp& qp = meant_by(*ours<Qp>(ibv));
  if (is_elsewhere(qp)) return refuse_elsewhere(qp);
  const std::lock_guard modifying(qp.modifying);
  const BiasedLock lock(qp.mutex);
  const auto state = static_cast<ibv_qp_state>(qp.engine->state());
  if (state != IBV_QPS_RESET && state != IBV_QPS_INIT) {
    return refuse(EINVAL,
                  "the queue pair is in %s.\nAttach counters before the change to IBV_QPS_RTR, or after one to "
                  "IBV_QPS_RESET.",
                  state_name(state));
  }
  if (qp.counters == nullptr) qp.counters.reset(new (std::nothrow) AttachedCounters);
  if (qp.counters == nullptr) return refuse_memory("the counters of a queue pair");
  if (const uint32_t taken = qp.counters->operations() & attr->op_mask; taken != 0) {
    return refuse(EBUSY,
                  "the operations 0x%x of op_mask have a counter of the queue pair.\n"
                  "Attach one counter for each operation; a queue pair keeps it until it is destroyed.",
                  taken);
  }
  auto& counted = *ours<CountedCompletions>(counter);
  counted.users.fetch_add(1);
  qp.counters->attach(counted, attr->op_mask);
  assert((qp.counters->operations() & attr->op_mask) == attr->op_mask);
  qp.engine->observed_by(*qp.counters);
  return 0;
}

int read_comp_cntr(provider::CompletionCounter* counter, uint64_t* value) {
  return read(counter, ours<CountedCompletions>(counter)->successes, value);
}

int read_err_comp_cntr(provider::CompletionCounter* counter, uint64_t* value) {
  return read(counter, ours<CountedCompletions>(counter)->errors, value);
}

int set_comp_cntr(provider::CompletionCounter* counter, uint64_t value) {
  return change(counter, ours<CountedCompletions>(counter)->successes, value, false);
}

int set_err_comp_cntr(provider::CompletionCounter* counter, uint64_t value) {
  return change(counter, ours<CountedCompletions>(counter)->errors, value, false);
}

int inc_comp_cntr(provider::CompletionCounter* counter, uint64_t amount) {
  return change(counter, ours<CountedCompletions>(counter)->successes, amount, true);
}

int inc_err_comp_cntr(provider::CompletionCounter* counter, uint64_t amount) {
  return change(counter, ours<CountedCompletions>(counter)->errors, amount, true);
}

}  // namespace dapple::soft::verbs
