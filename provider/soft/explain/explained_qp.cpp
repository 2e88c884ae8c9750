// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/explained_qp.hpp"

#include <string.h>

#include <cassert>
#include <string>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/explain/failures.hpp"
#include "provider/soft/explain/object_names.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/explain/stray_messages.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/send_queue.hpp"

namespace dapple::soft::explain {
namespace {

using check::format;
using check::number;
using roce::CompletionStatus;

// The first segment that the memory table refuses.
std::string bad_segment(const Qp& qp, uint32_t domain, std::span<const roce::Segment> segments, uint32_t rights) {
  for (const roce::Segment& segment : segments) {
    if (segment.length == 0) continue;
    KeyHolder holder;
    const std::string what = format("the segment of %u bytes at 0x%llx with the lkey 0x%x", segment.length,
                                    number(segment.address), segment.lkey);
    if (!qp.context->memory.find_holder(segment.lkey, holder) || holder.is_window)
      return what + " belongs to no registered memory.\nUse the lkey of a present registration of these bytes.";
    if (holder.domain != domain)
      return what + " has the key of another protection domain.\nRegister the memory in the queue pair's.";
    if ((holder.access & rights) != rights)
      return what +
             format(" lacks %s.\nRegister the memory with this right.", access_names(rights & ~holder.access).c_str());
    if (!within(segment.address, segment.length, holder.start, holder.length)) {
      return what + format(" is not within its region (%llu bytes at 0x%llx).\nRegister all bytes, or use fewer.",
                           number(holder.length), number(holder.start));
    }
    if (holder.kind == RegionKind::kGpu && holder.problem != nullptr) {
      return what + format(
                        " is a GPU's and cannot be copied: %s.\nDeregister memory before it is freed (cuMemFree() "
                        "or cudaFree()), and look for an earlier error of CUDA.",
                        holder.problem);
    }
  }
  return {};
}

Failure common(const Qp& qp, uint64_t id, CompletionStatus status) {
  assert_held(qp.mutex);
  assert(status != CompletionStatus::kSuccess);
  Failure failure;
  failure.context = qp.context;
  failure.qpn = qp.qpn;
  failure.type = qp.init.qp_type;
  failure.id = id;
  failure.status = status;
  failure.attributes = qp.engine->attributes();
  memcpy(failure.peer, qp.transport.path.destination, sizeof failure.peer);
  failure.same_host = qp.transport.ring != nullptr;
  if (qp.peers_packets != nullptr) failure.packets = *qp.peers_packets;
  return failure;
}

struct Text {
  const char* reason;
  const char* remedy;
};

Text text_of(roce::DroppedMessage::Reason reason) {
  using Reason = roce::DroppedMessage::Reason;
  switch (reason) {
    case Reason::kState:
      return {"it is not yet in IBV_QPS_RTR, or in an error",
              "Tell the peer to send only after the change to IBV_QPS_RTR."};
    case Reason::kQkey:
      return {"the message's Q_Key differs from the queue pair's",
              "Set wr.ud.remote_qkey of the sender to the qkey that ibv_modify_qp() has given the receiver."};
    case Reason::kTooLong:
      return {"the datagram is longer than the port's MTU", "Send datagrams of at most active_mtu bytes."};
    case Reason::kNoReceive:
      return {"it has no receive posted", "Post receives before the peer sends: UC and UD never wait for one."};
    case Reason::kSmallReceive:
      return {"its receive has too little room",
              "Post receives for the longest message, and for datagrams with 40 bytes more, for the GRH in front."};
    default:
      return {nullptr, nullptr};
  }
}

}  // namespace

void ExplainedQp::send_fails(const roce::SendRequest& request, CompletionStatus status) {
  Failure failure = common(qp_, request.id, status);
  failure.opcode = request.opcode;
  failure.remote_address = request.remote_address;
  failure.rkey = request.rkey;
  failure.length = roce::length_of(request.segments);
  if (status == CompletionStatus::kLocalProtection) {
    failure.detail = bad_segment(qp_, qp_.pd->number, request.segments,
                                 roce::kWithResponse.has(request.opcode) ? uint32_t{roce::kLocalWrite} : 0);
  } else if (status == CompletionStatus::kWindowBind) {
    const BindObstacle obstacle = qp_.context->memory.bind_obstacle({qp_.pd->number, qp_.qpn}, request.bind);
    const check::BindExplanation explanation = check::explain_bind(obstacle, request.bind);
    failure.detail = explanation.reason + ".\n" + explanation.remedy;
  }
  Failures::get().keep(failure, false);
}

void ExplainedQp::receive_fails(const roce::ReceiveRequest& request, CompletionStatus status) {
  Failure failure = common(qp_, request.id, status);
  const std::span<const roce::Segment> segments(request.segments, request.segment_count);
  failure.length = roce::length_of(segments);
  // The receives of XRC have the domains of several queues.
  if (status == CompletionStatus::kLocalProtection && qp_.xrc == nullptr) {
    const uint32_t domain = qp_.srq == nullptr ? qp_.pd->number : qp_.srq->pd->number;
    failure.detail = bad_segment(qp_, domain, segments, roce::kLocalWrite);
  }
  Failures::get().keep(failure, true);
}

void ExplainedQp::dropped(const roce::DroppedMessage& message) {
  assert_held(qp_.mutex);
  using Reason = roce::DroppedMessage::Reason;
  const Text text = text_of(message.reason);
  const uint32_t bit = 1u << static_cast<unsigned>(message.reason);
  if (text.reason == nullptr || (shown_ & bit) != 0) return;
  shown_ |= bit;
  std::string what = format("Queue pair 0x%x of %s (%s) drops a message", qp_.qpn, qp_.context->ibv->device->name,
                            type_name(qp_.init.qp_type));
  if (message.source_qpn != 0) what += format(" of queue pair 0x%x", message.source_qpn);
  what += std::string(" and tells nobody: ") + text.reason;
  if (message.reason == Reason::kQkey) {
    what += format(" (0x%llx, not 0x%llx)", number(message.found), number(message.wanted));
  } else if (message.found != 0 && message.wanted != 0) {
    what += format(" (%llu bytes with the GRH, room for %llu)", number(message.found), number(message.wanted));
  }
  process_reporter()->show({.level = check::Level::kWarning,
                            .kind = "dropped-message",
                            .text = what + ".",
                            .remedy = text.remedy,
                            .places = {made_}});
}

void explain_qp(Qp& qp) {
  if (process_reporter() == nullptr) return;
  explain_strays(qp.qpn);
  assert(qp.engine == nullptr && qp.explained == nullptr && qp.peers_packets == nullptr);
  qp.explained = std::make_shared<ExplainedQp>(qp);
  if (qp.init.qp_type == IBV_QPT_RC) qp.peers_packets = std::make_unique<PeersPackets>();
  qp.events.explained_by(qp.explained.get());
}

}  // namespace dapple::soft::explain
