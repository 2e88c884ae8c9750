// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/requests/explained_qp.hpp"

#include <string.h>

#include <cassert>
#include <string>
#include <utility>

#include "provider/network/address_text.hpp"
#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/request_findings.hpp"
#include "provider/soft/explain/failures.hpp"
#include "provider/soft/explain/process_reporter.hpp"
#include "provider/soft/explain/requests/peers_end.hpp"
#include "provider/soft/explain/requests/refused_access.hpp"
#include "provider/soft/explain/requests/stray_messages.hpp"
#include "provider/soft/raw/frame.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/transport/context.hpp"
#include "roce/send_queue/send_queue.hpp"

namespace dapple::soft::explain {
namespace {

using check::format;
using check::number;
using roce::CompletionStatus;

Failure common(const Qp& qp, uint64_t id, CompletionStatus status) {
  assert(status != CompletionStatus::kSuccess);
  Failure failure = ends_of(qp);
  failure.id = id;
  failure.status = status;
  return failure;
}

// Why the request cannot be done here.
Reason obstacle_of(const Qp& qp, const roce::SendRequest& request, const roce::QpAttributes& attributes) {
  if (!roce::operations_of(static_cast<roce::QpType>(qp.init.qp_type)).has(request.opcode)) {
    return {format("a queue pair of the type %s has no such operation", type_name(qp.init.qp_type)),
            "Use a queue pair of the type IBV_QPT_RC for this operation."};
  }
  if (request.address.is_foreign) {
    return {"its address handle has another protection domain than the queue pair",
            "Create the address handle in the protection domain of the queue pair."};
  }
  if (request.opcode == roce::SendOpcode::kLocalInvalidate) {
    return {format("the key 0x%x is not that of a memory window of type 2 which this queue pair has bound",
                   request.immediate_or_rkey),
            "Invalidate the present key of a memory window of type 2, on the queue pair that has bound it."};
  }
  if (roce::wants_response(request.opcode) && attributes.max_rd_atomic == 0) {
    return {"max_rd_atomic of the queue pair is 0, so it can make no RDMA Read, atomic or flush",
            "Set max_rd_atomic (IBV_QP_MAX_QP_RD_ATOMIC) in the change to IBV_QPS_RTS, or initiator_depth of "
            "librdmacm's rdma_conn_param, to a value above 0."};
  }
  return {};
}

// A send that is too long, or too short.
Reason length_limit(const Qp& qp, uint64_t length, const roce::QpAttributes& attributes) {
  const std::string has = format("the message has %llu bytes, and ", number(length));
  if (qp.init.qp_type == IBV_QPT_RAW_PACKET) {
    if (length < kEthernetHeader)
      return {has + format("an Ethernet frame has at least %zu", kEthernetHeader), "Send the frame with its header."};
    return {has + "the network device sends no frame of this length", "Send frames of at most the device's MTU."};
  }
  if (qp.init.qp_type == IBV_QPT_UD)
    return {has + format("a datagram has at most %u (the port's active_mtu)", attributes.path_mtu),
            "Send datagrams of at most active_mtu bytes, or messages by a connection."};
  return {has + format("one of this port has at most %u (max_msg_sz)", qp.context->attributes().max_msg_sz),
          "Send messages of at most the port's max_msg_sz."};
}

// The check has told why the peer's queue pair, which is in this process, refuses the request. Neither may be there
// when the program polls.
bool peer_has_told(const Failure& failure) {
  const bool is_refused = failure.status == CompletionStatus::kRemoteInvalidRequest ||
                          failure.status == CompletionStatus::kRemoteAccess ||
                          failure.status == CompletionStatus::kRemoteOperation;
  check::Checker* const checker = check::Checker::get();
  return checker != nullptr && is_refused && has_peers_end(failure) &&
         checker->told.has(failure.attributes.destination_qpn, check::ToldFailures::kPeersRequest);
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
    case Reason::kMtu:
      return {"path_mtu of its peer is another one", "Set the same path_mtu at both ends."};
    case Reason::kStranger:
      return {"it comes from another address than that of the peer",
              "Set grh.dgid of each end to the GID at the other's sgid_index."};
    case Reason::kOtherAddress:
      return {"it is for another address of this host than that of the queue pair",
              "Set grh.dgid of the peer to the GID at sgid_index here."};
    case Reason::kSmallReceive:
      return {"its receive has too little room",
              "Post receives for the longest message, and for datagrams with 40 bytes more, for the GRH in front."};
    default:
      return {nullptr, nullptr};
  }
}

}  // namespace

Failure ends_of(const Qp& qp) {
  assert_held(qp.mutex);
  Failure failure;
  failure.context = qp.context;
  failure.qpn = qp.qpn;
  failure.type = qp.init.qp_type;
  failure.attributes = qp.engine->attributes();
  memcpy(failure.own, qp.transport.path.source, sizeof failure.own);
  memcpy(failure.peer, qp.transport.path.destination, sizeof failure.peer);
  failure.hop_limit = qp.transport.path.hop_limit;
  failure.same_host = qp.transport.ring != nullptr;
  if (qp.layers.peers_packets != nullptr) failure.packets = *qp.layers.peers_packets;
  return failure;
}

void ExplainedQp::note_refusal(const Reason& reason) {
  refusal_ = reason;
  Failures::get().keep_refusal(qp_.qpn, qp_.engine->attributes().destination_qpn, reason);
}

void ExplainedQp::refused(uint32_t access) {
  const uint32_t missing = access & ~qp_.engine->attributes().access;
  note_refusal(missing == 0 ? Reason{"its max_dest_rd_atomic is 0",
                                     "Set max_dest_rd_atomic when ibv_modify_qp() takes that queue pair to RTR."}
                            : Reason{format("its qp_access_flags lack %s", access_names(missing).c_str()),
                                     "Set this right in qp_access_flags when that queue pair changes to IBV_QPS_INIT, "
                                     "or later."});
}

void ExplainedQp::denied(const roce::RemoteRange& range, uint32_t rights) {
  note_refusal(refused_range(qp_, range, rights));
  // The peer knows the range.
  refusal_.text =
      format("%llu bytes at 0x%llx by the rkey 0x%x: ", number(range.length), number(range.address), range.rkey) +
      refusal_.text;
}

void ExplainedQp::cannot_invalidate(uint32_t rkey) {
  note_refusal({format("the message brings the key 0x%x to invalidate, which is not that of a memory window of type 2 "
                       "that queue pair 0x%x has bound",
                       rkey, qp_.qpn),
                "Send the present key of a memory window of type 2 back, on the connection of the queue pair that has "
                "bound it."});
}

// The request takes no receive, whose completion would tell of it.
void ExplainedQp::event(roce::QpEvent event, uint32_t) {
  if (event != roce::QpEvent::kAccessError && event != roce::QpEvent::kRequestError) return;
  const Reason reason = std::exchange(refusal_, {});
  if (reason.text.empty() || has_peers_end(ends_of(qp_))) return;
  if (is_told()) return;
  process_reporter()->show({.level = check::Level::kWarning,
                            .kind = "refused-request",
                            .text = format("Queue pair 0x%x of %s refuses a request of its peer: ", qp_.qpn,
                                           qp_.context->ibv->device->name) +
                                    reason.text + ".",
                            .remedy = reason.remedy,
                            .places = {made_}});
}

// The check tells of keys and rights itself.
bool ExplainedQp::is_told() const {
  check::Checker* const checker = check::Checker::get();
  return checker != nullptr && checker->told.has(qp_.qpn, check::ToldFailures::kPeersRequest);
}

void ExplainedQp::send_fails(const roce::SendRequest& request, CompletionStatus status) {
  Failures::get().keep(failure_of(request, status), false);
}

void ExplainedQp::read_fails(const roce::SendRequest& request, CompletionStatus status) {
  Failures::get().keep(failure_of(request, status), true);
}

Failure ExplainedQp::failure_of(const roce::SendRequest& request, CompletionStatus status) const {
  Failure failure = common(qp_, request.id, status);
  failure.opcode = request.opcode;
  failure.remote_address = request.remote_address;
  failure.rkey = request.rkey;
  failure.length = roce::length_of(request.segments);
  if (status == CompletionStatus::kLocalProtection) {
    failure.detail = refused_segment(qp_, qp_.pd->number, request.segments,
                                     roce::kWithResponse.has(request.opcode) ? uint32_t{roce::kLocalWrite} : 0);
  } else if (status == CompletionStatus::kWindowBind) {
    const BindObstacle obstacle = qp_.context->memory.bind_obstacle({qp_.pd->number, qp_.qpn}, request.bind);
    const check::BindExplanation explanation = check::explain_bind(obstacle, request.bind);
    failure.detail = {explanation.reason, explanation.remedy};
  } else if (status == CompletionStatus::kLocalQpOperation) {
    failure.detail = obstacle_of(qp_, request, failure.attributes);
  } else if (status == CompletionStatus::kLocalLength) {
    failure.detail = length_limit(qp_, failure.length, failure.attributes);
  } else if (has_peers_end(failure)) {
    failure.detail = Failures::get().take_refusal(failure.attributes.destination_qpn, qp_.qpn);
  }
  failure.is_told = peer_has_told(failure);
  return failure;
}

void ExplainedQp::receive_fails(const roce::ReceiveRequest& request, CompletionStatus status) {
  Failure failure = common(qp_, request.id, status);
  const std::span<const roce::Segment> segments(request.segments, request.segment_count);
  failure.length = roce::length_of(segments);
  // The receives of XRC have the domains of several queues.
  if (status == CompletionStatus::kLocalProtection && qp_.xrc == nullptr) {
    const uint32_t domain = qp_.srq == nullptr ? qp_.pd->number : qp_.srq->pd->number;
    failure.detail = refused_segment(qp_, domain, segments, roce::kLocalWrite);
  } else if (status == CompletionStatus::kLocalAccess || status == CompletionStatus::kRemoteInvalidRequest) {
    failure.detail = std::exchange(refusal_, {});
  }
  failure.is_told = is_told();
  Failures::get().keep(failure, true);
}

void ExplainedQp::completion_is_planned(uint64_t id, bool is_receive, CompletionStatus status) {
  Failure failure = common(qp_, id, status);
  failure.is_planned = true;
  Failures::get().keep(failure, is_receive);
}

void ExplainedQp::dropped(const roce::DroppedMessage& message) {
  assert_held(qp_.mutex);
  using Kind = roce::DroppedMessage::Reason;
  const Reason refusal = std::exchange(refusal_, {});
  // A member of a group gets its own messages, too, and need not want them. It may have left since.
  if (message.reason == Kind::kNoReceive && message.source_qpn == qp_.qpn && qp_.was_in_group) return;
  const bool is_refused = message.reason == Kind::kOther && !refusal.text.empty();
  const Text text = is_refused ? Text{refusal.text.c_str(), refusal.remedy.c_str()} : text_of(message.reason);
  const uint32_t bit = 1u << static_cast<unsigned>(message.reason);
  if (text.reason == nullptr || (shown_ & bit) != 0 || (is_refused && is_told())) return;
  shown_ |= bit;
  std::string what = format("Queue pair 0x%x of %s (%s) drops a message", qp_.qpn, qp_.context->ibv->device->name,
                            type_name(qp_.init.qp_type));
  if (message.source_qpn != 0) what += format(" of queue pair 0x%x", message.source_qpn);
  what += std::string(" and tells nobody: ") + text.reason;
  if (message.reason == Kind::kQkey) {
    what += format(" (0x%llx, not 0x%llx)", number(message.found), number(message.wanted));
  } else if (message.reason == Kind::kStranger) {
    what += format(" (%s, not %s)", AddressText(message.address).c_str(),
                   AddressText(qp_.transport.path.destination).c_str());
  } else if (message.reason == Kind::kOtherAddress) {
    what +=
        format(" (%s, not %s)", AddressText(message.address).c_str(), AddressText(qp_.transport.path.source).c_str());
  } else if (message.reason == Kind::kMtu) {
    what += format(" (%llu, not %llu)", number(message.found), number(message.wanted));
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
  assert(qp.engine == nullptr && qp.layers.explained == nullptr && qp.layers.peers_packets == nullptr);
  qp.layers.explained = std::make_shared<ExplainedQp>(qp);
  if (qp.init.qp_type == IBV_QPT_RC) qp.layers.peers_packets = std::make_unique<PeersPackets>();
  qp.events.explained_by(qp.layers.explained.get());
}

}  // namespace dapple::soft::explain
