// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// CONNECT, LISTEN, ACCEPT, REJECT, DISCONNECT, NOTIFY.
#include <infiniband/verbs.h>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/constants.hpp"
#include "provider/dappled/rdma_cm/ids/words.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint8_t kMaxQpRetries = 7;
constexpr uint8_t kConsumerReason = static_cast<uint8_t>(cm::RejectReason::kConsumer);
constexpr uint8_t kVendorOptionReason = 35;
// The commands of libraries older than ECE end here.
constexpr size_t kConnectSize = offsetof(rdma_ucm_connect, ece);
constexpr size_t kAcceptSize = offsetof(rdma_ucm_accept, ece);

uint64_t service_of(const CmId& id, uint16_t port) {
  return cm::service_id_of(static_cast<cm::PortSpace>(id.port_space), port);
}

cm::Ece ece_of(const rdma_ucm_ece& ece) {
  return {.vendor = ece.vendor_id, .options = ece.attr_mod};
}

std::span<const uint8_t> private_data_of(const rdma_ucm_conn_param& parameters) {
  return {parameters.private_data, parameters.private_data_len};
}

template <size_t Size>
bool fill(cm::PrivateData<Size>& to, size_t offset, std::span<const uint8_t> data) {
  if (data.size() > Size - offset) return false;
  memcpy(to.data() + offset, data.data(), data.size());
  return true;
}

// IBTA 12.7.34: twice the packet lifetime, plus the device's ACK delay. All are exponents, so the sum is the larger one
// of the two, or one more if they are near to each other. The kernel rounds in this way.
uint8_t ack_timeout(uint8_t lifetime) {
  constexpr int kMaxTimeout = 31;
  const int smaller = std::min(lifetime + 1, int{kAckDelay}), larger = std::max(lifetime + 1, int{kAckDelay});
  return static_cast<uint8_t>(std::min(smaller + 1 >= larger ? larger + 1 : larger, kMaxTimeout));
}

cm::IpHeader ip_header(const CmId& id) {
  return {.ipv6 = id.source.family == AF_INET6,
          .source_port = id.source.port,
          .source = id.source.gid,
          .destination = id.destination.gid};
}

}  // namespace

cm::Path Service::path_of(const CmId& id) const {
  const soft::DeviceInfo* device = world_.devices().find(id.device);
  return {.device = id.device,
          .ca_guid = device != nullptr ? device->guid : 0,
          .local = id.source.gid,
          .remote = id.destination.gid,
          .traffic_class = id.route.traffic_class};
}

int Service::connect(Call& call) {
  rdma_ucm_connect command;
  if (!read(call, command, kConnectSize) || command.conn_param.valid == 0) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (id->state != State::kRouteResolved) {
    return refuse(EINVAL, "the id %s.\nCall rdma_resolve_route() first, and wait for RDMA_CM_EVENT_ROUTE_RESOLVED.",
                  words_of(id->state));
  }
  id->qpn = command.conn_param.qp_num & 0xFFFFFF;
  id->srq = command.conn_param.srq != 0;
  const int error = id->is_datagram() ? connect_datagrams(call, *id, command.conn_param)
                                      : connect_reliably(call, *id, command.conn_param, ece_of(command.ece));
  if (error == 0) enter(*id, State::kConnect);
  return error;
}

int Service::connect_reliably(Call& call, CmId& id, const rdma_ucm_conn_param& parameters, cm::Ece ece) {
  cm::Req req;
  req.service_id = service_of(id, id.destination.port);
  req.qpn = id.qpn;
  req.psn = id.psn;
  req.responder_resources = parameters.responder_resources;
  req.initiator_depth = parameters.initiator_depth;
  req.remote_response_timeout = req.local_response_timeout = kResponseTimeout;
  req.max_cm_retries = kMaxRetries;
  req.service = id.qp_type == IBV_QPT_UC ? cm::Service::kUnreliable : cm::Service::kReliable;
  req.flow_control = parameters.flow_control != 0;
  req.retry_count = std::min(parameters.retry_count, kMaxQpRetries);
  req.rnr_retry_count = std::min(parameters.rnr_retry_count, kMaxQpRetries);
  req.mtu = id.route.mtu;
  req.srq = id.srq;
  req.local_gid = id.source.gid;
  req.remote_gid = id.destination.gid;
  req.traffic_class = id.route.traffic_class;
  req.hop_limit = id.route.hop_limit;
  req.service_level = id.route.traffic_class >> 5;
  req.ack_timeout = ack_timeout(id.route.lifetime);
  req.ece = ece;
  cm::write_ip_header(ip_header(id), req.private_data);
  if (!fill(req.private_data, cm::kIpHeaderSize, private_data_of(parameters)))
    return refuse_private_data(parameters.private_data_len, req.private_data.size() - cm::kIpHeaderSize);

  assert(id.connection == cm::kNoId && id.route.known != 0);
  const auto status = manager_->connect(call.now, id.key, path_of(id), req, id.connection);
  if (status != cm::Status::kOk) return refuse_by(status);
  enter(id, Exchange::kReqSent);
  id.responder_resources = parameters.responder_resources;
  id.initiator_depth = parameters.initiator_depth;
  id.retry_count = req.retry_count;
  id.rnr_retry_count = req.rnr_retry_count;
  id.ack_timeout = req.ack_timeout;
  return 0;
}

int Service::connect_datagrams(Call& call, CmId& id, const rdma_ucm_conn_param& parameters) {
  cm::SidrReq request;
  request.service_id = service_of(id, id.destination.port);
  cm::write_ip_header(ip_header(id), request.private_data);
  if (!fill(request.private_data, cm::kIpHeaderSize, private_data_of(parameters)))
    return refuse_private_data(parameters.private_data_len, request.private_data.size() - cm::kIpHeaderSize);
  const auto status =
      manager_->resolve(call.now, id.key, path_of(id), request, kResponseTimeout, kMaxRetries, id.connection);
  if (status == cm::Status::kOk) enter(id, Exchange::kReqSent);
  return refuse_by(status);
}

int Service::listen(Call& call) {
  rdma_ucm_listen command;
  if (!read(call, command)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (id->state != State::kBound) {
    if (const int error = bind(*id, any_address(AF_INET)); error != 0) return error;
  }
  id->backlog = command.backlog == 0 ? kMaxBacklog : std::min(command.backlog, kMaxBacklog);
  id->whole_backlog = id->backlog;
  return start_listening(*id);
}

int Service::start_listening(CmId& id) {
  assert(id.state == State::kBound && id.connection == cm::kNoId && id.backlog > 0);
  // Another program may have got its port while no dappled ran.
  if (id.has_port == 0) {
    if (const int error = ports_.bind(id, 0); error != 0) return refuse_port(error, id);
  }
  if (const int error = ports_.may_listen(id); error != 0) return refuse_port(error, id);
  cm::ListenParameters parameters;
  parameters.service_id = service_of(id, id.source.port);
  parameters.datagram = id.is_datagram();
  if (!id.source.is_any()) parameters.address = id.source.gid;
  if (id.source.is_link_local()) parameters.device = id.device;
  if (id.one_family != 0) parameters.family = id.source.family == AF_INET ? cm::Family::kIpv4 : cm::Family::kIpv6;
  // This service counts the unread requests itself.
  parameters.backlog = UINT32_MAX;
  parameters.user = id.key;
  if (const auto status = manager_->listen(parameters, id.connection); status != cm::Status::kOk) {
    return refuse_by(status);
  }
  id.reuse_address = 0;
  enter(id, State::kListen);
  return 0;
}

int Service::accept(Call& call) {
  rdma_ucm_accept command;
  if (!read(call, command, kAcceptSize)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (id->state != State::kConnect || id->connection == cm::kNoId) {
    return refuse(
        EINVAL,
        "the id %s; only the id of a connection request can be accepted.\nCall rdma_accept() with the id of an "
        "event RDMA_CM_EVENT_CONNECT_REQUEST, which is not the listener's.",
        words_of(id->state));
  }
  const bool with_parameters = command.conn_param.valid != 0;
  if (with_parameters) {
    id->qpn = command.conn_param.qp_num & 0xFFFFFF;
    id->srq = command.conn_param.srq != 0;
  }
  int error = 0;
  if (id->is_datagram()) {
    error = answer_datagrams(call, *id, cm::SidrStatus::kValid,
                             with_parameters ? private_data_of(command.conn_param) : std::span<const uint8_t>());
  } else if (with_parameters) {
    error = accept_request(call, *id, command.conn_param, ece_of(command.ece));
  } else {
    error = refuse_by(manager_->establish(call.now, id->connection, {}));
    if (error == 0) enter(*id, Exchange::kEstablished);
  }
  if (error != 0) {
    if (id->is_datagram()) {
      answer_datagrams(call, *id, cm::SidrStatus::kRejected, {});
    } else if (manager_->reject(call.now, id->connection, cm::RejectReason::kConsumer, {}, {}) == cm::Status::kOk) {
      enter(*id, Exchange::kOver);
    }
    return error;
  }
  if (with_parameters) id->uid = command.uid;
  return 0;
}

int Service::accept_request(Call& call, CmId& id, const rdma_ucm_conn_param& parameters, cm::Ece ece) {
  cm::Rep rep;
  rep.qpn = id.qpn;
  rep.psn = id.psn;
  rep.responder_resources = parameters.responder_resources;
  rep.initiator_depth = parameters.initiator_depth;
  rep.target_ack_delay = kAckDelay;
  rep.flow_control = parameters.flow_control != 0;
  rep.rnr_retry_count = std::min(parameters.rnr_retry_count, kMaxQpRetries);
  rep.srq = id.srq;
  rep.ece = ece;
  if (!fill(rep.private_data, 0, private_data_of(parameters)))
    return refuse_private_data(parameters.private_data_len, rep.private_data.size());
  if (const auto status = manager_->accept(call.now, id.connection, rep); status != cm::Status::kOk) {
    return refuse_by(status);
  }
  enter(id, Exchange::kRepSent);
  id.responder_resources = parameters.responder_resources;
  id.initiator_depth = parameters.initiator_depth;
  return 0;
}

int Service::answer_datagrams(Call& call, CmId& id, cm::SidrStatus status, std::span<const uint8_t> private_data) {
  cm::SidrRep reply;
  reply.status = status;
  if (status == cm::SidrStatus::kValid) {
    if (id.qkey == 0) id.qkey = kUdpQkey;
    reply.qpn = id.qpn;
    reply.qkey = id.qkey;
  }
  if (!fill(reply.private_data, 0, private_data))
    return refuse_private_data(private_data.size(), reply.private_data.size());
  const auto outcome = manager_->answer(call.now, id.connection, reply);
  if (outcome == cm::Status::kOk) enter(id, Exchange::kOver);
  return refuse_by(outcome);
}

int Service::reject(Call& call) {
  rdma_ucm_reject command;
  if (!read(call, command)) return refuse_malformed();
  if (command.reason == 0) command.reason = kConsumerReason;
  if (command.reason != kConsumerReason && command.reason != kVendorOptionReason) {
    return refuse(EINVAL, "a program may reject with the reasons %u and %u, and not with %u.\nCall rdma_reject().",
                  kConsumerReason, kVendorOptionReason, command.reason);
  }
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (id->connection == cm::kNoId || id->state == State::kListen) return refuse_unconnected(*id);
  const std::span<const uint8_t> data(command.private_data, command.private_data_len);
  if (id->is_datagram()) return answer_datagrams(call, *id, cm::SidrStatus::kRejected, data);
  const auto status = manager_->reject(call.now, id->connection, static_cast<cm::RejectReason>(command.reason), {},
                                       std::as_bytes(data));
  if (status == cm::Status::kOk) enter(*id, Exchange::kOver);
  return refuse_by(status);
}

int Service::disconnect(Call& call) {
  rdma_ucm_disconnect command;
  if (!read(call, command)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (id->connection == cm::kNoId) return refuse_unconnected(*id);
  // As in the kernel, it is no error if the connection has already ended.
  manager_->disconnect(call.now, id->connection, {});
  return 0;
}

int Service::notify(Call& call) {
  rdma_ucm_notify command;
  if (!read(call, command)) return refuse_malformed();
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (id->device == 0 || id->connection == cm::kNoId) return refuse_unconnected(*id);
  if (command.event != IBV_EVENT_COMM_EST) {
    return refuse(EINVAL, "rdma_notify() takes IBV_EVENT_COMM_EST, and not the event %u.\nPass only this event on.",
                  command.event);
  }
  if (id->exchange == Exchange::kEstablished) {
    return refuse(EISCONN, "the connection is established already.\nIgnore this error: the message came first.");
  }
  return refuse_by(manager_->note_established(call.now, id->connection));
}

}  // namespace dapple::dappled::rdma_cm
