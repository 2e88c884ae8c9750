// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/queue_pairs/qp_checks.hpp"

#include <errno.h>

#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"

namespace dapple::soft::verbs {

void leave_out_what_is_lacking(ibv_qp_init_attr& attr) {
  if (!has_receives(attr.qp_type)) {
    attr.recv_cq = nullptr;
    attr.srq = nullptr;
  }
  if (!has_receives(attr.qp_type) || attr.srq != nullptr) attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
  if (has_sends(attr.qp_type)) return;
  attr.send_cq = nullptr;
  attr.cap.max_send_wr = attr.cap.max_send_sge = attr.cap.max_inline_data = 0;
}

int check_xrc(const ibv_context* context) {
  const DeviceAttributes& attributes = context_of(context)->attributes();
  const bool has_xrc = (attributes.device_cap_flags & IBV_DEVICE_XRC) != 0 && (attributes.features & kFeatureSrq) != 0;
  if (has_xrc) return 0;
  return refuse(EOPNOTSUPP,
                "the device's identity (--as) has no XRC.\n"
                "Look at IBV_DEVICE_XRC in device_cap_flags first.");
}

int check_qp(const QpParts& parts, const ibv_qp_init_attr& attr) {
  const bool is_xrc = attr.qp_type == IBV_QPT_XRC_SEND || attr.qp_type == IBV_QPT_XRC_RECV;
  const bool is_raw = attr.qp_type == IBV_QPT_RAW_PACKET;
  if (!is_xrc && !is_raw && attr.qp_type != IBV_QPT_RC && attr.qp_type != IBV_QPT_UC && attr.qp_type != IBV_QPT_UD) {
    return refuse(EOPNOTSUPP,
                  "qp_type is %d.\n"
                  "Use IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND or IBV_QPT_XRC_RECV.",
                  attr.qp_type);
  }
  if (is_xrc) {
    if (const int error = check_xrc(parts.context); error != 0) return error;
  }
  if (is_raw) {
    if (const int error = check_raw(parts.context); error != 0) return error;
  }
  if (parts.table != nullptr) return check_rss(parts, attr);
  if (attr.qp_type == IBV_QPT_XRC_RECV) {
    if (parts.xrcd != nullptr && parts.xrcd->context == parts.context) return 0;
    return refuse(EINVAL,
                  "xrcd is %s, and the receiving end of XRC belongs to an XRC domain.\n"
                  "Set xrcd to the result of ibv_open_xrcd() for the same ibv_context, and IBV_QP_INIT_ATTR_XRCD.",
                  parts.xrcd == nullptr ? "null" : "that of another open device");
  }
  const bool lacks_recv_cq = has_receives(attr.qp_type) && attr.recv_cq == nullptr;
  if (attr.send_cq == nullptr || lacks_recv_cq) {
    return refuse(EINVAL, "%s is null.\nSet both completion queues; they may be one. XRC_SEND needs only send_cq.",
                  attr.send_cq == nullptr ? "send_cq" : "recv_cq");
  }
  const ibv_context* context = parts.pd->context;
  const char* foreign = attr.send_cq->context != context                              ? "send_cq"
                        : attr.recv_cq != nullptr && attr.recv_cq->context != context ? "recv_cq"
                        : attr.srq != nullptr && attr.srq->context != context         ? "srq"
                                                                                      : nullptr;
  if (foreign != nullptr) {
    return refuse(EINVAL,
                  "%s and the protection domain belong to two open devices.\n"
                  "Make all objects of a queue pair with one ibv_context.",
                  foreign);
  }
  if (attr.srq != nullptr && ours<Srq>(attr.srq)->xrc.domain != nullptr) {
    return refuse(EINVAL,
                  "srq has the type IBV_SRQT_XRC, and queue pairs of the type %s do not take receives from it.\n"
                  "Use a shared receive queue of ibv_create_srq().",
                  type_name(attr.qp_type));
  }
  if (attr.srq != nullptr && ours<Srq>(attr.srq)->tags != nullptr && attr.qp_type != IBV_QPT_RC) {
    return refuse(EINVAL,
                  "srq has the type IBV_SRQT_TM, and the device matches the tags of messages of IBV_QPT_RC alone.\n"
                  "Use a shared receive queue of ibv_create_srq(), or a queue pair of the type IBV_QPT_RC.");
  }
  const ibv_qp_cap& cap = attr.cap;
  const DeviceAttributes& most = context_of(context)->attributes();
  const struct {
    const char* member;
    uint32_t asked, granted;
    const char* limit;
  } limits[] = {
      {"max_send_wr", cap.max_send_wr, most.max_qp_wr, "max_qp_wr"},
      {"max_recv_wr", cap.max_recv_wr, most.max_qp_wr, "max_qp_wr"},
      {"max_send_sge", cap.max_send_sge, most.max_send_sge, "max_sge"},
      {"max_recv_sge", cap.max_recv_sge, most.max_recv_sge, "max_sge"},
      {"max_inline_data", cap.max_inline_data, most.max_inline, "the limit of inline data, which no query shows"},
  };
  for (const auto& [member, asked, granted, limit] : limits) {
    if (asked <= granted) continue;
    return refuse(EINVAL, "cap.%s is %u, and the device has at most %u (%s).\nAsk for at most %u.", member, asked,
                  granted, limit, granted);
  }
  return 0;
}

}  // namespace dapple::soft::verbs
