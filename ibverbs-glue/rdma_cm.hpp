// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Owning handles over librdmacm. Destroying a CmId blocks until every event reported for it has been acknowledged, so
// an event is acknowledged before any lock is taken that a destroying thread may hold (see CmEvent::take).
#pragma once

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "ibverbs-glue/socket_address.hpp"

namespace dapple::verbs {

struct EventChannelDeleter {
  void operator()(rdma_event_channel* channel) const noexcept { rdma_destroy_event_channel(channel); }
};
using EventChannel = std::unique_ptr<rdma_event_channel, EventChannelDeleter>;

struct CmIdDeleter {
  void operator()(rdma_cm_id* id) const noexcept { rdma_destroy_id(id); }
};
using CmId = std::unique_ptr<rdma_cm_id, CmIdDeleter>;

// A new id; null with errno set on failure. Every event of this id returns context. RDMA_PS_TCP is for connections,
// RDMA_PS_UDP for datagrams.
inline CmId create_cm_id(rdma_event_channel* channel, void* context, rdma_port_space space = RDMA_PS_TCP) noexcept {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel, &id, context, space)) return nullptr;
  return CmId(id);
}

// The most bytes that the connection manager carries; the length travels in 8 bits.
inline constexpr size_t kMaxPrivateData = 256;

// A copy of private data.
class PrivateData {
 public:
  // Bytes beyond the most are dropped.
  void assign(std::span<const uint8_t> bytes) noexcept {
    size_ = std::min(bytes.size(), bytes_.size());
    std::copy_n(bytes.begin(), size_, bytes_.begin());
  }
  const uint8_t* data() const noexcept { return bytes_.data(); }
  size_t size() const noexcept { return size_; }
  const uint8_t* begin() const noexcept { return data(); }
  const uint8_t* end() const noexcept { return data() + size_; }

 private:
  std::array<uint8_t, kMaxPrivateData> bytes_{};
  size_t size_ = 0;
};

// A connection manager event by value, already acknowledged.
struct CmEvent {
  rdma_cm_event_type type{};
  int status = 0;
  void* context = nullptr;        // of the event's id; for a connect request, of the listening id
  rdma_cm_id* request = nullptr;  // the new id of a connect request, owned by the receiver
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  PrivateData private_data;
  // For datagrams: the peer in an ESTABLISHED event.
  ibv_ah_attr ah_attr{};
  uint32_t qp_num = 0;

  // Takes the next event off the channel. False with errno set if there is none (EAGAIN) or the call fails.
  [[nodiscard]] static bool take(rdma_event_channel* channel, CmEvent& out) noexcept {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event)) return false;
    const bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    const rdma_conn_param& conn = event->param.conn;  // the other member of the union begins with private data too
    const bool is_datagrams = event->id->ps == RDMA_PS_UDP;
    out.type = event->event;
    out.status = event->status;
    out.context = is_request ? event->listen_id->context : event->id->context;
    out.request = is_request ? event->id : nullptr;
    out.responder_resources = is_datagrams ? 0 : conn.responder_resources;
    out.initiator_depth = is_datagrams ? 0 : conn.initiator_depth;
    if (is_datagrams) {
      out.ah_attr = event->param.ud.ah_attr;
      out.qp_num = event->param.ud.qp_num;
    }
    const size_t size = conn.private_data ? conn.private_data_len : 0;
    out.private_data.assign({static_cast<const uint8_t*>(conn.private_data), size});
    rdma_ack_cm_event(event);
    return true;
  }
};

// An id with the device that has this loopback address. Binding may not find that device, because rdma_cm treats such
// an address as any. Null if the address is another, and if no device has it, in which case the kernel would also treat
// it as any.
inline CmId loopback_device_id(const sockaddr* address) noexcept {
  if (!is_loopback(address)) return nullptr;
  SocketAddress own(address, 0);  // the port may be in use
  constexpr int kTimeout = 1000;  // milliseconds; no other host is involved
  CmId id = create_cm_id(nullptr, nullptr);
  if (!id || rdma_resolve_addr(id.get(), own.get(), own.get(), kTimeout)) return nullptr;
  const uint8_t* gid = id->route.addr.addr.ibaddr.sgid.raw;
  in6_addr of_device;
  std::memcpy(&of_device, gid, sizeof of_device);
  const bool has_it =
      IN6_IS_ADDR_LOOPBACK(&of_device) || (IN6_IS_ADDR_V4MAPPED(&of_device) && gid[12] == IN_LOOPBACKNET);
  return id->verbs && has_it ? std::move(id) : nullptr;
}

}  // namespace dapple::verbs
