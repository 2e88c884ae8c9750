// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Turns the connection manager's events into events of ids.
#include <infiniband/verbs.h>

#include <new>

#include "provider/dappled/rdma_cm/attributes.hpp"
#include "provider/dappled/rdma_cm/command.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

template <class Parameters>
void fill(Parameters& parameters, std::span<const std::byte> data) {
  parameters.private_data_len = static_cast<uint8_t>(std::min<size_t>(data.size(), RDMA_MAX_PRIVATE_DATA - 1));
  memcpy(parameters.private_data, data.data(), parameters.private_data_len);
}

Address address_of(const Gid& gid, bool ipv6, uint16_t port) {
  Address address;
  address.family = ipv6 ? AF_INET6 : AF_INET;
  address.port = port;
  address.gid = gid;
  return address;
}

}  // namespace

void Service::settle(Time now) {
  if (!afterwards_) return;
  if (afterwards_->refused) {
    manager_->destroy(now, afterwards_->connection);
  } else {
    manager_->set_user(afterwards_->connection, afterwards_->user);
  }
  afterwards_.reset();
}

void Service::event(const cm::Event& event) {
  CmId* id = ids_.find_by_key(event.user);
  if (event.type == cm::EventType::kConnectRequest || event.type == cm::EventType::kSidrRequest) {
    return report_request(event);
  }
  if (id == nullptr || id->connection != event.id) return;
  if (event.type == cm::EventType::kTimewaitExit) {
    if (id->state == State::kDisconnect) add_event(*id, EventKind::kTimewaitExit);
    return;
  }
  if (id->state != State::kConnect) return;
  note(*id);
  switch (event.type) {
    case cm::EventType::kResponse:
      return report_response(*id, event);
    case cm::EventType::kSidrReply:
      return report_reply(*id, event);
    case cm::EventType::kEstablished:
      id->exchange = Exchange::kEstablished;
      add_event(*id, EventKind::kEstablished);
      return;
    case cm::EventType::kUnreachable:
      id->exchange = Exchange::kOver;
      add_event(*id, EventKind::kUnreachable, -ETIMEDOUT);
      return;
    case cm::EventType::kRejected:
      id->exchange = Exchange::kOver;
      if (Event* added = add_event(*id, EventKind::kRejected, static_cast<int>(event.reason))) {
        fill(added->response.param.conn, event.private_data);
      }
      return;
    case cm::EventType::kDisconnected:
      id->exchange = Exchange::kOver;
      id->state = State::kDisconnect;
      add_event(*id, EventKind::kDisconnected);
      return;
    default:
      return;
  }
}

void Service::report_request(const cm::Event& event) {
  CmId* listener = ids_.find_by_key(event.user);
  CmId* id = nullptr;
  if (listener != nullptr && listener->connection == event.listener && listener->backlog > 0) {
    id = add_request(*listener, event);
  }
  afterwards_ = {event.id, id == nullptr, id == nullptr ? 0 : id->key};
}

CmId* Service::add_request(CmId& listener, const cm::Event& event) {
  // The kernel gives the listener's uid, and the new id's number.
  Event* added = add_event(listener, EventKind::kConnectRequest);
  if (added == nullptr) return nullptr;
  CmId* id = add_id(*listener.channel, listener.port_space, listener.qp_type);
  const Gid& local = event.ip != nullptr ? event.ip->destination : event.path->local;
  const Gid& remote = event.ip != nullptr ? event.ip->source : event.path->remote;
  const bool ipv6 = event.ip != nullptr ? event.ip->ipv6 : !cm::is_ipv4(local);
  if (id != nullptr) {
    id->source = address_of(local, ipv6, listener.source.port);
    id->destination = address_of(remote, ipv6, event.ip != nullptr ? event.ip->source_port : 0);
    // The address of the packets. The IP header in the request may name another one.
    Address packets = address_of(event.path->local, !cm::is_ipv4(event.path->local), 0);
    const soft::DeviceInfo* device = world_.devices().find(event.path->device);
    if (packets.is_link_local() && device != nullptr) {
      packets.scope = id->source.scope = id->destination.scope = device->netdev_index;
    }
    if (!attach(*id, packets)) {
      ids_.remove(*id);
      id->channel->ids.remove(*id);
      delete id;
      id = nullptr;
    }
  }
  if (id == nullptr) {
    // The event's message has not been sent yet.
    drop(*listener.channel, *added);
    return nullptr;
  }
  id->unheard = true;
  id->state = State::kConnect;
  id->connection = event.id;
  id->traffic_class = listener.traffic_class;
  id->has_timeout = listener.has_timeout;
  id->timeout = listener.timeout;
  added->request = id;
  added->response.id = id->number;
  listener.backlog--;
  id->exchange = Exchange::kReqReceived;
  if (event.req == nullptr) {
    fill(added->response.param.ud, event.private_data);
    return id;
  }
  const cm::Req& req = *event.req;
  id->remote_qpn = req.qpn;
  id->remote_psn = req.psn;
  id->responder_resources = req.initiator_depth;
  id->initiator_depth = req.responder_resources;
  id->retry_count = req.retry_count;
  id->rnr_retry_count = req.rnr_retry_count;
  id->ack_timeout = req.ack_timeout;
  id->route = {.known = true,
               .source = event.path->local,
               .destination = event.path->remote,
               .mtu = req.mtu,
               .hop_limit = req.hop_limit,
               .traffic_class = req.traffic_class,
               .lifetime = static_cast<uint8_t>(req.ack_timeout - (req.ack_timeout > 0 ? 1 : 0))};
  rdma_ucm_conn_param& parameters = added->response.param.conn;
  parameters.qp_num = req.qpn;
  parameters.srq = req.srq;
  parameters.responder_resources = req.initiator_depth;
  parameters.initiator_depth = req.responder_resources;
  parameters.flow_control = req.flow_control;
  parameters.retry_count = req.retry_count;
  parameters.rnr_retry_count = req.rnr_retry_count;
  fill(parameters, event.private_data);
  return id;
}

void Service::report_response(CmId& id, const cm::Event& event) {
  const cm::Rep& rep = *event.rep;
  id.exchange = Exchange::kRepReceived;
  id.remote_qpn = rep.qpn;
  id.remote_psn = rep.psn;
  id.responder_resources = rep.initiator_depth;
  id.initiator_depth = rep.responder_resources;
  id.rnr_retry_count = rep.rnr_retry_count;
  Event* added = add_event(id, EventKind::kConnectResponse);
  if (added == nullptr) return;
  rdma_ucm_conn_param& parameters = added->response.param.conn;
  parameters.qp_num = rep.qpn;
  parameters.srq = rep.srq;
  parameters.responder_resources = rep.initiator_depth;
  parameters.initiator_depth = rep.responder_resources;
  parameters.flow_control = rep.flow_control;
  parameters.rnr_retry_count = rep.rnr_retry_count;
  fill(parameters, event.private_data);
}

void Service::report_reply(CmId& id, const cm::Event& event) {
  const cm::SidrRep& reply = *event.sidr_rep;
  const bool valid = reply.status == cm::SidrStatus::kValid;
  Event* added = nullptr;
  id.exchange = Exchange::kOver;
  if (!valid) {
    added = add_event(id, EventKind::kUnreachable, static_cast<int>(reply.status));
  } else if (id.qkey != 0 && reply.qkey != 0 && id.qkey != reply.qkey) {
    added = add_event(id, EventKind::kAddrError, -EINVAL);
  } else {
    if (id.qkey == 0) id.qkey = reply.qkey;
    added = add_event(id, EventKind::kEstablished);
  }
  if (added == nullptr) return;
  rdma_ucm_ud_param& parameters = added->response.param.ud;
  fill(parameters, event.private_data);
  if (!valid) return;
  parameters.qp_num = reply.qpn;
  parameters.qkey = reply.qkey;
  write_ah(id, id.destination.gid, parameters.ah_attr);
}

}  // namespace dapple::dappled::rdma_cm
