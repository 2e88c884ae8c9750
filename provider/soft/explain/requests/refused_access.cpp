// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/requests/refused_access.hpp"

#include <string>

#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"

namespace dapple::soft::explain {
namespace {

using check::format;
using check::number;

constexpr char kGpuRemedy[] =
    "Deregister memory before it is freed (cuMemFree() or cudaFree()), and look for an earlier error of CUDA.";

const char* holder_name(const KeyHolder& holder) {
  return holder.is_window ? "memory window" : "region";
}

}  // namespace

Reason refused_segment(const Qp& qp, uint32_t domain, std::span<const roce::Segment> segments, uint32_t rights) {
  for (const roce::Segment& segment : segments) {
    if (segment.length == 0) continue;
    KeyHolder holder;
    const std::string what = format("the segment of %u bytes at 0x%llx with the lkey 0x%x", segment.length,
                                    number(segment.address), segment.lkey);
    if (!qp.context->memory.find_holder(segment.lkey, holder)) {
      return {what + " belongs to no registered memory", "Use the lkey of a present registration of these bytes."};
    }
    if (holder.is_window) {
      return {what + " has the key of a memory window, which only peers may use",
              "Use the lkey of the region under the memory window."};
    }
    if (holder.domain != domain)
      return {what + " has the key of another protection domain", "Register the memory in the queue pair's."};
    if ((holder.access & rights) != rights) {
      return {what + format(" lacks %s", access_names(rights & ~holder.access).c_str()),
              "Register the memory with this right."};
    }
    if (!within(segment.address, segment.length, holder.start, holder.length)) {
      return {what + format(" is not within its region (%llu bytes at 0x%llx)", number(holder.length),
                            number(holder.start)),
              "Register all bytes, or use fewer."};
    }
    if (holder.kind == RegionKind::kGpu && holder.problem != nullptr)
      return {what + format(" is a GPU's and cannot be copied: %s", holder.problem), kGpuRemedy};
  }
  return {};
}

Reason refused_range(const Qp& qp, const roce::RemoteRange& range, uint32_t rights) {
  KeyHolder holder;
  if (!qp.context->memory.find_holder(range.rkey, holder) && qp.context->memory.is_unbound_window(range.rkey)) {
    return {
        "the memory window of the key is not bound there",
        "Use the key that a bind has made, after the completion of the bind. ibv_bind_mw() is for windows of type 1, "
        "and returns EINVAL for type 2: post IBV_WR_BIND_MW for these."};
  }
  if (!qp.context->memory.find_holder(range.rkey, holder)) {
    return {"the key belongs to no memory there",
            "Send the rkey of registered memory in a byte order that both ends know, and keep the memory registered "
            "until the last request that uses it."};
  }
  if (holder.domain != peers_domain_of(qp)) {
    return {format("the key's memory has another protection domain than queue pair 0x%x there", qp.qpn),
            "Register the memory in the protection domain of the queue pair that the peer is connected to."};
  }
  if (holder.qpn && *holder.qpn != qp.qpn) {
    return {format("queue pair 0x%x there has bound the memory window of the key, and the request reaches 0x%x",
                   *holder.qpn, qp.qpn),
            "Bind the memory window on the queue pair that the peer is connected to, or use one of type 1."};
  }
  if ((holder.access & rights) != rights) {
    return {format("the %s of the key lacks %s", holder_name(holder), access_names(rights & ~holder.access).c_str()),
            holder.is_window ? "Bind the memory window with this right." : "Register the memory with this right."};
  }
  if (range.length != 0 && !within(range.address, range.length, holder.start, holder.length)) {
    return {format("the %s of the key has %llu bytes at 0x%llx, and does not hold all of them", holder_name(holder),
                   number(holder.length), number(holder.start)),
            "Register all bytes that a request may use, or use fewer."};
  }
  if (holder.kind == RegionKind::kGpu && holder.problem != nullptr)
    return {format("the memory is a GPU's and cannot be copied: %s", holder.problem), kGpuRemedy};
  if ((rights & roce::kFlushPersistent) != 0) {
    return {"that machine cannot make bytes persistent",
            "Flush with IBV_FLUSH_GLOBAL alone, or to a machine that has persistent memory."};
  }
  return {"the program there has unmapped or protected the memory of the key",
          "Deregister memory before it is unmapped, when no request uses it any more."};
}

}  // namespace dapple::soft::explain
