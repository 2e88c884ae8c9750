// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Requests of peers: new ids for a listener's program, within the listener's backlog.
#include <infiniband/verbs.h>

#include <array>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/attributes.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

// If the backlog is full, this many of its unread requests are compared, and this many events are looked at for them.
constexpr size_t kCompared = 16;
constexpr size_t kLookedAt = 64;

Address address_of(const Gid& gid, bool ipv6, uint16_t port) {
  Address address;
  address.family = ipv6 ? AF_INET6 : AF_INET;
  address.port = port;
  address.gid = gid;
  return address;
}

bool is_loopback(const Gid& gid) {
  constexpr Gid kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return cm::is_ipv4(gid) ? gid[12] == 127 : gid == kLoopback;
}

// Not a group, not everybody and not nobody.
bool is_one_host(const Gid& gid) {
  return cm::is_ipv4(gid) ? gid[12] != 0 && gid[12] < 224 : gid != Gid{} && gid[0] != 0xFF;
}

// The program sees the addresses of the request's IP header. As in the kernel, they must be those of hosts, and a
// request from another host cannot claim to come over loopback.
bool is_plausible(const cm::IpHeader& ip, const cm::Path& path) {
  return is_one_host(ip.source) && is_one_host(ip.destination) &&
         (!is_loopback(ip.source) || is_loopback(path.remote)) &&
         (!is_loopback(ip.destination) || is_loopback(path.local));
}

// As in the kernel: a listener gets the requests of its type of queue pair. Those of XRC go as reliable ones.
bool is_for_type(const CmId& listener, const cm::Event& event) {
  return event.req == nullptr || (event.req->service == cm::Service::kUnreliable) == (listener.qp_type == IBV_QPT_UC);
}

template <class Parameters>
void fill(Parameters& parameters, std::span<const std::byte> data) {
  parameters.private_data_len = static_cast<uint8_t>(std::min<size_t>(data.size(), RDMA_MAX_PRIVATE_DATA - 1));
  memcpy(parameters.private_data, data.data(), parameters.private_data_len);
}

}  // namespace

void Service::report_request(const cm::Event& event) {
  CmId* listener = ids_.find_by_key(event.user);
  // One datagram brings one request, which settle() finishes.
  assert(!afterwards_);
  afterwards_ = {.connection = event.id};
  if (listener == nullptr || listener->connection != event.listener) return;
  // As in the kernel: a request beyond the backlog, or without memory for it, gets no answer, so the peer asks again.
  afterwards_->refusal = Refusal::kIgnored;
  Event* taken = nullptr;
  if (listener->backlog == 0) {
    taken = displaceable(*listener, event.path->remote);
    if (taken == nullptr) return;
  }
  CmId* id = add_id(*listener->channel, listener->port_space, listener->qp_type);
  if (id == nullptr) return;
  if (!place_request(*id, *listener, event)) {
    afterwards_->refusal = Refusal::kRejected;
    return discard(*id);
  }
  if (taken != nullptr) {
    // The message of this event may have been sent. The reader gets the new request by it.
    afterwards_->displaced = taken->request->connection;
    discard(*taken->request);
  } else {
    // The kernel gives the listener's uid, and the new id's number.
    taken = add_event(*listener, EventKind::kConnectRequest);
    if (taken == nullptr) return discard(*id);
    assert(listener->backlog > 0);
    listener->backlog--;
  }
  assert(taken->id == listener && id->unheard);
  taken->request = id;
  taken->response.id = id->number;
  taken->response.param = {};
  fill_request(*id, *taken, event);
  afterwards_->refusal = Refusal::kNone;
  afterwards_->user = id->key;
}

// An unread request of a sender that has several of them, and not of the newcomer: a flood from one address leaves the
// backlog to others. nullptr if there is none.
Event* Service::displaceable(const CmId& listener, const Gid& newcomer) {
  std::array<Event*, kCompared> unread{};
  size_t count = 0;
  Event* at = listener.channel->events.first();
  for (size_t i = 0; at != nullptr && i < kLookedAt && count < kCompared; i++, at = at->newer) {
    if (at->id == &listener && at->request != nullptr) unread[count++] = at;
  }
  Event* most_frequent = nullptr;
  ptrdiff_t most = 1;
  for (size_t i = 0; i < count; i++) {
    const Gid& sender = unread[i]->request->sender;
    const ptrdiff_t same = std::count_if(unread.begin(), unread.begin() + static_cast<ptrdiff_t>(count),
                                         [&](const Event* other) { return other->request->sender == sender; });
    if (same <= most || sender == newcomer) continue;
    most = same;
    most_frequent = unread[i];
  }
  return most_frequent;
}

// Takes back an id that no program knows.
void Service::discard(CmId& id) {
  assert(id.uid == 0 && id.has_port == 0 && id.memberships.size() == 0 && id.timer_at == 0);
  forget(id);
  ids_.remove(id);
  id.channel->ids.remove(id);
  delete &id;
}

// False if no device has the address to which the request came, or if the request names impossible addresses or another
// type of queue pair than the listener's.
bool Service::place_request(CmId& id, const CmId& listener, const cm::Event& event) {
  if (!is_for_type(listener, event)) return false;
  if (event.ip != nullptr && !is_plausible(*event.ip, *event.path)) return false;
  const Gid& local = event.ip != nullptr ? event.ip->destination : event.path->local;
  const Gid& remote = event.ip != nullptr ? event.ip->source : event.path->remote;
  const bool ipv6 = event.ip != nullptr ? event.ip->ipv6 : !cm::is_ipv4(local);
  id.source = address_of(local, ipv6, listener.source.port);
  id.destination = address_of(remote, ipv6, event.ip != nullptr ? event.ip->source_port : 0);
  id.sender = event.path->remote;
  // The address of the packets. The IP header in the request may name another one.
  Address packets = address_of(event.path->local, !cm::is_ipv4(event.path->local), 0);
  const soft::DeviceInfo* device = world_.devices().find(event.path->device);
  if (packets.is_link_local() && device != nullptr) {
    packets.scope = id.source.scope = id.destination.scope = device->netdev_index;
  }
  if (!attach(id, packets)) return false;
  id.unheard = true;
  enter(id, State::kConnect);
  enter(id, Exchange::kReqReceived);
  id.connection = event.id;
  id.traffic_class = listener.traffic_class;
  id.has_timeout = listener.has_timeout;
  id.timeout = listener.timeout;
  return true;
}

void Service::fill_request(CmId& id, Event& added, const cm::Event& event) {
  if (event.req == nullptr) return fill(added.response.param.ud, event.private_data);
  const cm::Req& req = *event.req;
  id.remote_qpn = req.qpn;
  id.remote_psn = req.psn;
  id.responder_resources = req.initiator_depth;
  id.initiator_depth = req.responder_resources;
  id.retry_count = req.retry_count;
  id.rnr_retry_count = req.rnr_retry_count;
  id.ack_timeout = req.ack_timeout;
  id.route = {.known = true,
              .source = event.path->local,
              .destination = event.path->remote,
              .mtu = req.mtu,
              .hop_limit = req.hop_limit,
              .traffic_class = req.traffic_class,
              .lifetime = static_cast<uint8_t>(req.ack_timeout - (req.ack_timeout > 0 ? 1 : 0))};
  added.response.ece = {.vendor_id = req.ece.vendor, .attr_mod = req.ece.options};
  rdma_ucm_conn_param& parameters = added.response.param.conn;
  parameters.qp_num = req.qpn;
  parameters.srq = req.srq;
  parameters.responder_resources = req.initiator_depth;
  parameters.initiator_depth = req.responder_resources;
  parameters.flow_control = req.flow_control;
  parameters.retry_count = req.retry_count;
  parameters.rnr_retry_count = req.rnr_retry_count;
  fill(parameters, event.private_data);
}

}  // namespace dapple::dappled::rdma_cm
