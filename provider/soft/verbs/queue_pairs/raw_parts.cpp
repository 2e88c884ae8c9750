// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/queue_pairs/raw_parts.hpp"

#include <errno.h>
#include <string.h>

#include <cassert>
#include <new>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/raw/raw_objects.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"

namespace dapple::soft::verbs {
namespace {

int refuse_socket(int error) {
  if (error == EPERM) {
    return refuse(EPERM,
                  "Ethernet frames need the capability CAP_NET_RAW, and the process lacks it.\n"
                  "Run the program as root, or give its container or service this capability.");
  }
  if (error == EOPNOTSUPP) {
    return refuse(EOPNOTSUPP,
                  "the network interface has no Ethernet headers, as those of tunnels (tun, WireGuard, IP over IP).\n"
                  "Use a device on an interface with Ethernet.");
  }
  return refuse(error,
                "the kernel gives no AF_PACKET socket: %s.\n"
                "Look at the limit of open files, and at rules (seccomp) that forbid such sockets.",
                strerrordesc_np(error));
}

int check_hash(const ibv_rx_hash_conf& hash, uint32_t entries) {
  if (hash.rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ) {
    return refuse(EOPNOTSUPP, "rx_hash_function is 0x%x.\nSet rx_hash_function to IBV_RX_HASH_FUNC_TOEPLITZ.",
                  hash.rx_hash_function);
  }
  const uint64_t fields = hash.rx_hash_fields_mask;
  if (const uint64_t unknown = fields & ~kHashFields; unknown != 0) {
    return refuse(EOPNOTSUPP,
                  "rx_hash_fields_mask has 0x%llx, and the device hashes addresses of IP and ports of TCP and UDP.\n"
                  "Compare it with rss_caps.rx_hash_fields_mask of ibv_query_device_ex().",
                  static_cast<unsigned long long>(unknown));
  }
  const auto has = [fields](uint64_t some) { return (fields & some) != 0; };
  const bool both_ip =
      has(IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4) && has(IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6);
  const bool both_transports = has(IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP) &&
                               has(IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP);
  if (both_ip || both_transports) {
    return refuse(EINVAL,
                  "rx_hash_fields_mask has fields of %s, and one queue pair hashes one of the two.\n"
                  "Make a queue pair for each, and flows that separate them.",
                  both_ip ? "IPv4 and of IPv6" : "TCP and of UDP");
  }
  if (fields == 0 && entries > 1) {
    return refuse(EINVAL,
                  "rx_hash_fields_mask is 0, and the table has %u entries, of which only the first would receive.\n"
                  "Select fields, or use a table of one entry.",
                  entries);
  }
  if (hash.rx_hash_key_len != kHashKeySize || hash.rx_hash_key == nullptr) {
    return refuse(EINVAL, "rx_hash_key_len is %u, and the key has %zu bytes.\nSet rx_hash_key and rx_hash_key_len.",
                  hash.rx_hash_key_len, kHashKeySize);
  }
  return 0;
}

}  // namespace

int check_raw(const ibv_context* context) {
  if ((context_of(context)->attributes().device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) != 0) return 0;
  return refuse(EOPNOTSUPP,
                "the device's identity (--as) has no raw packets and no flow steering.\n"
                "Look at IBV_DEVICE_MANAGED_FLOW_STEERING in device_cap_flags first.");
}

int open_frame_socket(OwnedFd& socket) {
  const CancelGuard whole;
  const int error = open_frames(socket);
  return error == 0 ? 0 : refuse_socket(error);
}

int check_rss(const QpParts& parts, const ibv_qp_init_attr& attr) {
  if (attr.qp_type != IBV_QPT_RAW_PACKET || parts.table->ibv.context != parts.context) {
    return refuse(attr.qp_type != IBV_QPT_RAW_PACKET ? EOPNOTSUPP : EINVAL,
                  "%s.\nUse IBV_QPT_RAW_PACKET, and a table of the same ibv_context.",
                  attr.qp_type != IBV_QPT_RAW_PACKET
                      ? "qp_type is not IBV_QPT_RAW_PACKET, which alone has receive side scaling"
                      : "rwq_ind_tbl belongs to another open device");
  }
  if (parts.hash == nullptr) {
    return refuse(EINVAL,
                  "comp_mask has IBV_QP_INIT_ATTR_IND_TABLE and lacks IBV_QP_INIT_ATTR_RX_HASH.\n"
                  "Set rx_hash_conf, and this bit.");
  }
  const ibv_qp_cap& cap = attr.cap;
  if (attr.send_cq != nullptr || attr.recv_cq != nullptr || attr.srq != nullptr || cap.max_send_wr != 0 ||
      cap.max_recv_wr != 0 || cap.max_recv_sge != 0) {
    return refuse(attr.send_cq != nullptr || cap.max_send_wr != 0 ? EOPNOTSUPP : EINVAL,
                  "a queue pair with receive side scaling has no queues of its own: the work queues of its table "
                  "receive.\nLeave send_cq, recv_cq, srq and cap 0, and send by another queue pair.");
  }
  return check_hash(*parts.hash, parts.table->size);
}

int join_frames(Qp& qp, const QpParts& parts) {
  const CancelGuard whole;
  OwnedFd socket;
  if (const int error = open_frame_socket(socket); error != 0) return error;
  DeviceInfo info;
  if (const int error = qp.context->look_up(info); error != 0) return error;
  auto* raw = new (std::nothrow) RawQp(qp);
  if (raw == nullptr) return refuse_memory("queue pairs");
  assert(qp.raw == nullptr);
  qp.raw = {raw, [](RawQp* each) { delete each; }};
  if (parts.table != nullptr) {
    raw->table = parts.table;
    raw->hash.fields = parts.hash->rx_hash_fields_mask;
    memcpy(raw->hash.key, parts.hash->rx_hash_key, kHashKeySize);
    raw->table->users.fetch_add(1);
  }
  int error = qp.runtime->open_frames();
  if (error == 0) {
    error = qp.runtime->with_frames([&](FrameWire& frames) {
      return frames.join(qp, {info.index, info.netdev_index}, socket);
    });
  }
  if (error == 0) return 0;
  leave_frames(qp);
  return error == ENOMEM ? refuse_memory("frames") : refuse_socket(error);
}

void leave_frames(Qp& qp) {
  if (qp.raw == nullptr) return;
  const CancelGuard whole;
  qp.runtime->with_frames([&](FrameWire& frames) { return frames.leave(qp); });
  if (qp.raw->table != nullptr) leave(qp.raw->table->users);
  qp.raw->table = nullptr;
}

int check_rate(uint32_t rate_kbps, ibv_qp_state state) {
  if (rate_kbps > kMaxRate) {
    return refuse(EINVAL,
                  "rate_limit is %u kb/s, and qp_rate_limit_max is %u kb/s.\n"
                  "Compare it with packet_pacing_caps of ibv_query_device_ex(). 0 ends the limit.",
                  rate_kbps, kMaxRate);
  }
  if (state != IBV_QPS_RTS) {
    return refuse(EINVAL, "the queue pair is in %s, and only in RTS it has a rate.\nSet the rate with or after RTS.",
                  state_name(state));
  }
  return 0;
}

}  // namespace dapple::soft::verbs
