// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Counters of flows. As on mlx5, ibv_create_flow() binds them to a flow.
#include <errno.h>

#include <memory>
#include <new>

#include "provider/common/host_guards.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"

namespace dapple::soft::verbs {
namespace {

// Calls use(counters) while no flow counts.
template <typename Use>
auto with(ibv_counters* ibv, Use use) {
  const CancelGuard whole;
  FlowCounters& counters = ours<Counters>(ibv)->counters;
  return context_of(ibv->context)->runtime.with_frames([&](FrameWire&) { return use(counters); });
}

}  // namespace

ibv_counters* create_counters(ibv_context* context, ibv_counters_init_attr* attr) {
  if (!usable(context)) return failed(refuse_child());
  if (const int error = check_raw(context); error != 0) return failed(error);
  if (attr->comp_mask != 0)
    return failed(refuse(EOPNOTSUPP, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr->comp_mask));
  std::unique_ptr<Counters> counters(new (std::nothrow) Counters);
  if (counters == nullptr) return failed(refuse_memory("counters"));
  counters->ibv.context = context;
  context_of(context)->live_objects.fetch_add(1);
  return &counters.release()->ibv;
}

int destroy_counters(ibv_counters* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  if (const uint32_t flows = ours<Counters>(ibv)->users.load(); flows != 0)
    return refuse(EBUSY, "%u flows have the counters.\nCall ibv_destroy_flow() for each first.", flows);
  leave(context_of(ibv->context)->live_objects);
  delete ours<Counters>(ibv);
  return 0;
}

int attach_counters_point_flow(ibv_counters* ibv, ibv_counter_attach_attr* attr, ibv_flow* flow) {
  if (!usable(ibv->context)) return refuse_child();
  if (flow != nullptr) {
    return refuse(ENOTSUP,
                  "flow is not null, and a flow gets its counters when it is made.\n"
                  "Pass null, and give the counters to ibv_create_flow() by IBV_FLOW_SPEC_ACTION_COUNT.");
  }
  if (attr->comp_mask != 0) return refuse(EOPNOTSUPP, "comp_mask is 0x%x.\nSet comp_mask to 0.", attr->comp_mask);
  if (attr->counter_desc != IBV_COUNTER_PACKETS && attr->counter_desc != IBV_COUNTER_BYTES) {
    return refuse(ENOTSUP, "counter_desc is %u.\nUse IBV_COUNTER_PACKETS or IBV_COUNTER_BYTES.",
                  unsigned{attr->counter_desc});
  }
  if (const uint32_t flows = ours<Counters>(ibv)->users.load(); flows != 0) {
    return refuse(EBUSY,
                  "%u flows have the counters, and so no point can be attached.\n"
                  "Attach all points before ibv_create_flow().",
                  flows);
  }
  const auto kind =
      attr->counter_desc == IBV_COUNTER_PACKETS ? FlowCounters::Kind::kPackets : FlowCounters::Kind::kBytes;
  if (with(ibv, [&](FlowCounters& counters) { return counters.attach(kind, attr->index); })) return 0;
  return refuse(ENOMEM, "the counters have %zu points, the limit.\nAttach packets and bytes once.",
                FlowCounters::kMaxPoints);
}

int read_counters(ibv_counters* ibv, uint64_t* values, uint32_t count, uint32_t flags) {
  if (!usable(ibv->context)) return refuse_child();
  if (const uint32_t unknown = flags & ~uint32_t{IBV_READ_COUNTERS_ATTR_PREFER_CACHED}; unknown != 0) {
    return refuse(EINVAL, "flags has 0x%x.\nUse IBV_READ_COUNTERS_ATTR_PREFER_CACHED, or 0.", unknown);
  }
  // As the kernel.
  if (ours<Counters>(ibv)->users.load() == 0) {
    return refuse(EINVAL,
                  "no flow has the counters.\n"
                  "Read them after ibv_create_flow() and before ibv_destroy_flow().");
  }
  const uint64_t needed = with(ibv, [&](FlowCounters& counters) {
    if (counters.size() <= count) counters.read({values, count});
    return counters.size();
  });
  if (needed <= count) return 0;
  return refuse(EINVAL,
                "ncounters is %u, and the indexes of the attached points need %llu values.\n"
                "Pass an array of this size.",
                count, static_cast<unsigned long long>(needed));
}

}  // namespace dapple::soft::verbs
