// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Turns the connection manager's events into events of ids.
#include <infiniband/verbs.h>

#include <new>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/attributes.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

template <class Parameters>
void fill(Parameters& parameters, std::span<const std::byte> data) {
  parameters.private_data_len = static_cast<uint8_t>(std::min<size_t>(data.size(), RDMA_MAX_PRIVATE_DATA - 1));
  memcpy(parameters.private_data, data.data(), parameters.private_data_len);
}

}  // namespace

void Service::settle(Time now) {
  if (!afterwards_) return;
  assert(afterwards_->connection != cm::kNoId);
  assert((afterwards_->refusal == Refusal::kNone) == (afterwards_->user != 0));
  // Only an accepted request takes the place of another.
  assert(afterwards_->displaced == cm::kNoId || afterwards_->refusal == Refusal::kNone);
  // Its peer may have ended the request meanwhile. Then it is not pending any more.
  if (afterwards_->displaced != cm::kNoId && manager_->ignore(afterwards_->displaced) != cm::Status::kOk)
    manager_->destroy(now, afterwards_->displaced);
  switch (afterwards_->refusal) {
    case Refusal::kNone:
      manager_->set_user(afterwards_->connection, afterwards_->user);
      break;
    case Refusal::kIgnored:
      manager_->ignore(afterwards_->connection);
      break;
    case Refusal::kRejected:
      manager_->destroy(now, afterwards_->connection);
      break;
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
      enter(*id, Exchange::kEstablished);
      add_event(*id, EventKind::kEstablished);
      return;
    case cm::EventType::kUnreachable:
      enter(*id, Exchange::kOver);
      add_event(*id, EventKind::kUnreachable, -ETIMEDOUT);
      return;
    case cm::EventType::kRejected:
      enter(*id, Exchange::kOver);
      if (Event* added = add_event(*id, EventKind::kRejected, static_cast<int>(event.reason))) {
        fill(added->response.param.conn, event.private_data);
      }
      return;
    case cm::EventType::kDisconnected:
      enter(*id, Exchange::kOver);
      enter(*id, State::kDisconnect);
      add_event(*id, EventKind::kDisconnected, event.timed_out ? -ETIMEDOUT : 0);
      return;
    default:
      return;
  }
}

void Service::report_response(CmId& id, const cm::Event& event) {
  const cm::Rep& rep = *event.rep;
  assert(!id.is_datagram());
  enter(id, Exchange::kRepReceived);
  id.remote_qpn = rep.qpn;
  id.remote_psn = rep.psn;
  id.responder_resources = rep.initiator_depth;
  id.initiator_depth = rep.responder_resources;
  id.rnr_retry_count = rep.rnr_retry_count;
  Event* added = add_event(id, EventKind::kConnectResponse);
  if (added == nullptr) return;
  added->response.ece = {.vendor_id = rep.ece.vendor, .attr_mod = rep.ece.options};
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
  assert(id.is_datagram());
  enter(id, Exchange::kOver);
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
  write_ah(id, world_.gid_index(id), id.destination.gid, parameters.ah_attr);
}

}  // namespace dapple::dappled::rdma_cm
