// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Flow steering.
#include <errno.h>
#include <string.h>

#include <atomic>
#include <cassert>
#include <memory>
#include <new>

#include "provider/common/host_guards.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/flow_attr.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"

namespace dapple::soft::verbs {
namespace {

std::atomic<uint32_t> next_handle{1};

// Opens the flow's socket. 0, or the errno of a refusal.
int check_flow(const Qp& qp, OwnedFd& socket) {
  if (const int error = check_raw(qp.context->ibv); error != 0) return error;
  // As the kernel: the privilege first.
  if (const int error = open_frame_socket(socket); error != 0) return error;
  if (qp.raw != nullptr) return 0;
  return refuse(EINVAL,
                "the queue pair has the type %s, and flows steer Ethernet frames.\n"
                "Use a queue pair of the type IBV_QPT_RAW_PACKET.",
                type_name(qp.init.qp_type));
}

// Binds the flow to the counters that it wants. 0, or the errno of a refusal.
int bind(Flow& flow) {
  ibv_counters* wanted = flow.entry.rule.counters;
  if (wanted == nullptr) return 0;
  if (wanted->context != flow.ibv.context)
    return refuse(EINVAL, "the counters belong to another open device.\nMake both with one ibv_context.");
  FlowCounters& counters = ours<Counters>(wanted)->counters;
  if (!counters.is_attached()) {
    return refuse(EINVAL,
                  "the counters have no points, so nothing can be read.\n"
                  "Call ibv_attach_counters_point_flow() first.");
  }
  flow.entry.counters = &counters;
  return 0;
}

// Steers frames by the flow from now on. 0, or the errno of a refusal.
int begin(Flow& flow, Qp& qp, const ibv_flow_attr& attr) {
  const CancelGuard whole;
  OwnedFd socket;
  if (const int error = check_flow(qp, socket); error != 0) return error;
  if (const int error = read_flow(attr, flow.entry.rule); error != 0) return error;
  flow.entry.qp = &qp;
  if (const int error = bind(flow); error != 0) return error;
  const int error = qp.runtime->with_frames([&](FrameWire& frames) { return frames.add(flow.entry, socket); });
  if (error == 0) return 0;
  return refuse(error,
                "the network interface does not admit the flow's frames: %s.\n"
                "Look at the interface, and at the memory for sockets (net.core.optmem_max).",
                strerrordesc_np(error));
}

}  // namespace

ibv_flow* create_flow(ibv_qp* ibv, ibv_flow_attr* attr) {
  if (!usable(ibv->context)) return failed(refuse_child());
  Qp& qp = *ours<Qp>(ibv);
  std::unique_ptr<Flow> flow(new (std::nothrow) Flow);
  if (flow == nullptr) return failed(refuse_memory("flows"));
  flow->ibv.context = ibv->context;
  if (const int error = begin(*flow, qp, *attr); error != 0) return failed(error);
  flow->ibv.handle = next_handle.fetch_add(1, std::memory_order_relaxed);
  assert(qp.raw != nullptr && flow->entry.qp == &qp);
  assert((flow->entry.rule.counters == nullptr) == (flow->entry.counters == nullptr));
  qp.raw->flows.fetch_add(1);
  if (flow->entry.rule.counters != nullptr) ours<Counters>(flow->entry.rule.counters)->users.fetch_add(1);
  return &flow.release()->ibv;
}

int destroy_flow(ibv_flow* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  const std::unique_ptr<Flow> flow(ours<Flow>(ibv));
  const CancelGuard whole;
  Qp& qp = *flow->entry.qp;
  qp.runtime->with_frames([&](FrameWire& frames) { return frames.remove(flow->entry); });
  leave(qp.raw->flows);
  if (flow->entry.rule.counters != nullptr) leave(ours<Counters>(flow->entry.rule.counters)->users);
  return 0;
}

}  // namespace dapple::soft::verbs
