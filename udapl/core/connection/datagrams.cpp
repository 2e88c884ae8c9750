// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/datagrams.hpp"

#include <cassert>
#include <new>

#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/connection/ud_connection.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/refusal.hpp"

namespace dapple::udapl {

int Datagrams::bring_up(ibv_qp* qp, const Ia& ia) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = ia.port();
  attr.qkey = kQkey;
  int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attr.qp_state = IBV_QPS_RTR;
  if (!error) error = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  attr.qp_state = IBV_QPS_RTS;
  if (!error) error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
  return error;
}

Result<> Datagrams::connect(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                            std::span<const uint8_t> private_data) {
  const verbs::SocketAddress peer(remote, to_port(conn_qual));
  auto connection = UdConnection::connect(*this, peer.get(), timeout_us, private_data);
  if (!connection) return tl::unexpected(connection.error());
  connections_.add(**connection);
  ep_.connection().remember_peer(remote, conn_qual);
  update_state();
  return {};
}

void Datagrams::accept(verbs::CmId& request, const UdReceived& message, std::span<const uint8_t> reply) {
  UdConnection* const connection = UdConnection::accept(*this, request, message, reply);
  connections_.add(*connection);
  ep_.connection().forget_request();
  ep_.connection().remember_peer(connection->peer(), 0);
  update_state();
  assert(connection->pending() && connection->passive());
  connection->begin_answer();
}

void Datagrams::update_state() {
  bool asks = false;
  bool answers = false;
  connections_.for_each<UdConnection>([&](const UdConnection& connection) {
    if (connection.pending()) (connection.passive() ? answers : asks) = true;
  });
  switch (ep_.state()) {
    case EpState::kUnconnected:
    case EpState::kActiveConnectionPending:
    case EpState::kCompletionPending:
      ep_.enter(established_ ? EpState::kDatagrams
                : asks       ? EpState::kActiveConnectionPending
                : answers    ? EpState::kCompletionPending
                             : EpState::kUnconnected);
      break;
    default:  // an endpoint that is up, reserved or failed keeps its state
      break;
  }
}

ibv_ah* Datagrams::add_address(verbs::Ah address) {
  assert(address);
  try {
    addresses_.add(address.get());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return address.release();
}

void Datagrams::on_end(UdConnection& connection, EventKind kind) {
  assert(&connection.of() == this && !connection.pending());
  if (kind == EventKind::kUdEstablished) {
    established_ = true;
    ep_.ia().counters().add(connection.passive() ? IaCounter::kPassiveEst : IaCounter::kActiveEst);
  }
  update_state();  // this comes first: the consumer may send to an address as soon as the event reports it
  Event event{};
  event.kind = kind;
  event.datagrams = {&ep_, &connection};
  ep_.evds().connect->post(event);
}

Result<> Datagrams::free_connection(const void* wanted) {
  UdConnection* connection = arena<UdConnection>().find(wanted);
  if (!connection || &connection->of() != this) return fail(Type::kInvalidParameter, Subtype::kConnection);
  ObjectList::remove(*connection);
  UdConnection::free(*connection);
  update_state();
  return {};
}

Result<> Datagrams::free_address(ibv_ah* address) {
  if (!addresses_.remove(address)) return refuse(Subtype::kAddress, "it is no address of an event of this EP");
  if (int error = ibv_destroy_ah(address)) {
    addresses_.add(address);  // its slot is still free, so this allocates nothing
    return fail_errno(error);
  }
  return {};
}

// The consumer must not get events about connections that are gone.
void Datagrams::abandon() {
  ep_.forget_datagrams();
  connections_.for_each<UdConnection>([](UdConnection& connection) {
    ObjectList::remove(connection);
    UdConnection::free(connection);
  });
  assert(!connections_.first());
}

void Datagrams::clear(uint32_t former_qp_num) {
  ep_.ia().ud_replies().forget(former_qp_num);
  abandon();
  // The call is repeated at once, because no caller can free the address later.
  addresses_.clear([](ibv_ah* address) {
    if (ibv_destroy_ah(address)) ibv_destroy_ah(address);
  });
  established_ = false;
}

}  // namespace dapple::udapl
