// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/service_point.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cassert>
#include <climits>

#include "udapl/core/connection/connection_manager.hpp"
#include "udapl/core/connection/cr.hpp"
#include "udapl/core/connection/csp.hpp"
#include "udapl/core/connection/psp.hpp"
#include "udapl/core/connection/rsp.hpp"
#include "udapl/core/connection/ud_message.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {
namespace {

// The kernel lowers the backlog to net.rdma_ucm.max_backlog. The kernel drops a request that finds no room, and the
// peer sends it again seconds later.
constexpr int kBacklog = INT_MAX;

}  // namespace

ServicePoint::ServicePoint(Ia& ia, Kind kind, Evd& evd) : Object(ia.tables().live, kind, &ia), evd_(evd) {}

ServicePoint::~ServicePoint() = default;

Result<> ServicePoint::listen(uint64_t conn_qual) {
  const verbs::SocketAddress address(ia().address(), to_port(conn_qual));
  if (auto listening = listen_at(address.get()); !listening) return listening;
  if (conn_qual) conn_qual_ = conn_qual;
  return {};
}

Result<> ServicePoint::listen_at(const sockaddr* address) {
  if (auto listening = listen_at(address, RDMA_PS_TCP, id_); !listening) return listening;
  conn_qual_ = ntohs(rdma_get_src_port(id_.get()));
  return {};
}

Result<> ServicePoint::listen_for_datagrams() {
  if (datagram_id_) return {};
  const verbs::SocketAddress address(ia().address(), to_port(conn_qual_));
  return listen_at(address.get(), RDMA_PS_UDP, datagram_id_);
}

Result<> ServicePoint::listen_at(const sockaddr* address, rdma_port_space space, verbs::CmId& id) {
  assert(!id);
  verbs::CmId listener = ConnectionManager::instance().new_id(*this, space);
  if (!listener) return fail_errno(errno);
  if (rdma_bind_addr(listener.get(), const_cast<sockaddr*>(address)) || rdma_listen(listener.get(), kBacklog)) {
    if (is_shortage(errno)) return fail_errno(errno);
    return fail(errno == EADDRINUSE ? Type::kConnQualInUse : Type::kConnQualUnavailable);
  }
  id = std::move(listener);
  ia().counters().add(IaCounter::kListen);
  return {};
}

void ServicePoint::on_request(const verbs::CmEvent& event) {
  verbs::CmId id(event.request);
  const bool datagrams = asks_for_datagrams(id);
  if (datagrams) {
    const UdReceived message(event.private_data);
    if (!message.ours) return;  // the request does not name the asking queue pair
    if (const UdReply* reply = ia().ud_replies().find(rdma_get_peer_addr(id.get()), message)) {
      rdma_conn_param param{};
      param.private_data = reply->message.data();
      param.private_data_len = reply->message.size();
      param.qp_num = reply->qp_num;
      rdma_accept(id.get(), &param);  // if this message is lost too, the peer asks again
      return;
    }
  }
  ia().counters().add(datagrams ? IaCounter::kAhReqRx : IaCounter::kReqRx);
  try {
    // If no one takes the id, it is destroyed here, and the peer sees a rejection that is not the consumer's.
    (void)take(id, event);
  } catch (const std::bad_alloc&) {
  }
}

Result<> ServicePoint::take(verbs::CmId& id, const verbs::CmEvent& event) {
  switch (kind()) {
    case Kind::kRsp:
      return static_cast<Rsp*>(this)->take_request(id, event);
    case Kind::kPsp:
      return static_cast<Psp*>(this)->take_request(id, event);
    default:
      return static_cast<Csp*>(this)->take_request(id, event);
  }
}

Result<Ep*> ServicePoint::make_ep(const verbs::CmId& id, const verbs::CmEvent& event) {
  EpAttr attr;
  attr.datagrams = asks_for_datagrams(id);
  attr.max_rdma_read_in = std::min<uint32_t>(event.responder_resources, ia().device().max_qp_rd_atom);
  attr.max_rdma_read_out = std::min<uint32_t>(event.initiator_depth, ia().device().max_qp_init_rd_atom);
  return Ep::create(ia(), nullptr, {}, attr);
}

Result<> ServicePoint::announce(verbs::CmId& id, const verbs::CmEvent& event, Ep* ep, bool made_for_it) {
  const bool datagrams = asks_for_datagrams(id);
  Cr* cr = nullptr;
  try {
    cr = Cr::create(ia(), id, event);
  } catch (const std::bad_alloc&) {
    if (made_for_it) (void)Ep::free(*ep);
    throw;
  }
  if (ep) cr->hold(*ep, made_for_it);
  Event arrival{};
  arrival.kind = datagrams ? EventKind::kUdRequest : EventKind::kConnectionRequest;
  arrival.cr = {this, cr, conn_qual_};
  if (!evd_->post(arrival)) {
    id = cr->give_up_id();
    (void)Cr::free(*cr);
    return fail(Type::kInsufficientResources, Subtype::kMemory);
  }
  ia().counters().add(IaCounter::kRequest);
  return {};
}

}  // namespace dapple::udapl
