// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/queue_pairs/post_refusals.hpp"

#include <errno.h>

#include <optional>

#include "provider/soft/faults/verbs_names.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/transport/post.hpp"
#include "roce/send_queue/send_queue.hpp"

namespace dapple::soft {
namespace {

unsigned long long number(uint64_t value) {
  return value;
}

const char* name_of(roce::SendOpcode opcode) {
  return opcode_name(opcode).data();
}

int refuse_full(Qp& qp) {
  const uint32_t depth = qp.init.cap.max_send_wr;
  const std::optional<roce::SendRequest> oldest = qp.engine->oldest_send();
  if (!oldest) {
    return refuse(ENOMEM,
                  "the send queue has room for %u requests (cap.max_send_wr).\n"
                  "Make the queue pair with room for the longest list of requests.",
                  depth);
  }
  const bool is_signaled = qp.init.sq_sig_all != 0 || (oldest->flags & roce::kSignaled) != 0;
  const uint32_t waiting = qp.send_cq->queue.count();
  return refuse(
      ENOMEM,
      "%llu requests are outstanding, and the send queue has room for %u (cap.max_send_wr). The oldest, wr_id "
      "0x%llx (IBV_WR_%s), is%s signaled; %u completions wait in send_cq and are not polled.\n%s",
      number(qp.engine->outstanding_sends()), depth, number(oldest->id), name_of(oldest->opcode),
      is_signaled ? "" : " not", waiting,
      waiting != 0  ? "Poll the completion queue, and count the requests that are outstanding, before you post "
                      "more."
      : is_signaled ? "Wait for the completion of the oldest request before you post more: the peer has not "
                      "acknowledged it yet."
                    : "Set IBV_SEND_SIGNALED at least once for each cap.max_send_wr requests, and poll that "
                      "completion before you post more.");
}

int refuse_length(const Qp& qp, const roce::SendRequest& request) {
  const uint64_t length = roce::length_of(request.segments);
  if (roce::goes_inline(request)) {
    return refuse(EINVAL,
                  "the request has IBV_SEND_INLINE and %llu bytes, and the queue pair has cap.max_inline_data "
                  "%u.\nPost the request without IBV_SEND_INLINE, or make the queue pair with more inline data.",
                  number(length), qp.init.cap.max_inline_data);
  }
  return refuse(EINVAL, "the message has %llu bytes, and max_msg_sz of the port is %llu.\nSend it in parts.",
                number(length), number(qp.context->attributes().max_msg_sz));
}

}  // namespace

int refuse_send(Qp& qp, const roce::SendRequest& request, roce::PostError error) {
  const int result = error_of(error);
  if (!explains_refusals()) return result;
  const uint32_t asked = static_cast<uint32_t>(request.segments.size());
  if (qp.init.qp_type == IBV_QPT_XRC_RECV) {
    return refuse(result,
                  "the queue pair has the type XRC_RECV, which only receives.\n"
                  "Post requests to a queue pair of the type IBV_QPT_XRC_SEND, which is connected to the peer's "
                  "IBV_QPT_XRC_RECV.");
  }
  switch (error) {
    case roce::PostError::kNone:
      break;
    case roce::PostError::kFull:
      return refuse_full(qp);
    case roce::PostError::kState:
      return refuse(result,
                    "the queue pair is in %s, and a queue pair takes send requests from IBV_QPS_RTS on.\n"
                    "Change the queue pair to IBV_QPS_INIT, IBV_QPS_RTR and IBV_QPS_RTS before the first post.",
                    state_name(static_cast<int>(qp.engine->state())));
    case roce::PostError::kSegments:
      if (asked <= qp.init.cap.max_send_sge) {
        return refuse(result,
                      "an atomic has a result of 8 bytes, and the request's segments have %llu.\n"
                      "Give the atomic one segment of 8 bytes.",
                      number(roce::length_of(request.segments)));
      }
      return refuse(result,
                    "num_sge is %u, and the queue pair has cap.max_send_sge %u.\n"
                    "Make the queue pair with a larger cap.max_send_sge, or post fewer segments.",
                    asked, qp.init.cap.max_send_sge);
    case roce::PostError::kOpcode:
      return refuse(result,
                    "the opcode is %u (IBV_WR_%s), which the device, its identity (--as) or XRC lacks.\n"
                    "Initialize opcode, and look at the device's attributes first.",
                    static_cast<unsigned>(request.opcode), name_of(request.opcode));
    case roce::PostError::kLength:
      return refuse_length(qp, request);
  }
  return result;
}

int refuse_segments(int count) {
  return refuse(EINVAL,
                "num_sge is %d, and a request has at most %u segments.\nInitialize num_sge, and post fewer segments.",
                count, roce::kMaxSegments);
}

int refuse_receive(const ReceiveQueue& queue, size_t segments, int error) {
  if (error == ENOMEM) {
    return refuse(error,
                  "%u receives wait for messages, and the queue has room for no more (max_recv_wr or max_wr).\n"
                  "Post a receive for each completion of an earlier one, or make a longer queue.",
                  queue.depth());
  }
  return refuse(error,
                "num_sge is %zu, and the queue has max_recv_sge (or max_sge) %u.\n"
                "Make the queue with more segments, or post fewer.",
                segments, queue.max_segments());
}

int refuse_receives(const Qp& qp) {
  if (!takes_receives(qp)) {
    return refuse(EINVAL,
                  "the queue pair has the type %s, which has no receives of its own.\n"
                  "Post receives by ibv_post_srq_recv() to a shared receive queue of the type IBV_SRQT_XRC.",
                  type_name(qp.init.qp_type));
  }
  if (qp.srq != nullptr) {
    return refuse(EINVAL,
                  "the queue pair takes its receives from a shared receive queue.\nPost receives by "
                  "ibv_post_srq_recv().");
  }
  return refuse(EINVAL,
                "the queue pair is in IBV_QPS_RESET, and a queue pair takes receives from IBV_QPS_INIT on.\n"
                "Change the queue pair to IBV_QPS_INIT before the first receive.");
}

int refuse_bind(const Qp& qp, const ibv_mw* window) {
  if (qp.init.qp_type == IBV_QPT_UD) {
    return refuse(EINVAL,
                  "the queue pair has the type UD, and only connections bind memory windows.\n"
                  "Use a queue pair of the type IBV_QPT_RC or IBV_QPT_UC.");
  }
  if (window == nullptr) return refuse(EINVAL, "bind_mw.mw is null.\nSet bind_mw.mw to the memory window.");
  if (window->context != qp.context->ibv) {
    return refuse(EINVAL,
                  "the memory window and the queue pair belong to two open devices.\n"
                  "Make both with one ibv_context.");
  }
  return refuse(EINVAL,
                "the memory window has the type 1, which ibv_bind_mw() binds.\n"
                "Use ibv_bind_mw(), or a memory window of IBV_MW_TYPE_2.");
}

}  // namespace dapple::soft
