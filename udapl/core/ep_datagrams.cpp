// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Datagram endpoints: one UD queue pair, ready from the start, and the addresses that connecting and accepting bring.
// The endpoint has no connection to lose; each connect and each accept is an exchange of its own and may run beside
// others.
#include <arpa/inet.h>

#include <algorithm>
#include <new>
#include <utility>

#include "udapl/core/connection_manager.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/service_point.hpp"
#include "udapl/core/ud_connection.hpp"

namespace dapple::udapl {
namespace {

constexpr uint32_t kQkey = RDMA_UDP_QKEY;  // the connection manager's own messages to peers

template <class T>
void make_room(std::vector<T>& list) {
  if (list.size() == list.capacity()) list.reserve(list.size() * 2 + 4);
}

}  // namespace

int Ep::bring_up_datagrams(ibv_qp* qp, const Ia& ia) {
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

Result<> Ep::connect_datagrams(const sockaddr* remote, uint64_t conn_qual, uint32_t timeout_us,
                               std::span<const uint8_t> private_data) {
  switch (state()) {
    case EpState::kUnconnected:
    case EpState::kActiveConnectionPending:
    case EpState::kCompletionPending:
    case EpState::kDatagrams:
      break;
    default:
      return tl::unexpected(state_error());
  }
  if (auto ready = check_configured(); !ready) return ready;
  if (private_data.size() > kMaxConnectData) return fail(Type::kInvalidParameter, Subtype::kPrivateData);
  make_room(ud_->connections);
  remember_peer(remote, conn_qual);
  sockaddr_storage peer = remote_;
  // sin_port and sin6_port lie at the same place.
  reinterpret_cast<sockaddr_in&>(peer).sin_port = htons(to_port(conn_qual));
  auto connection = UdConnection::connect(*this, reinterpret_cast<const sockaddr*>(&peer), timeout_us, private_data);
  if (!connection) return tl::unexpected(connection.error());
  ud_->connections.push_back(*connection);
  counters_.add(EpCounter::kConnect);
  update_datagrams();
  return {};
}

UdConnection& Ep::take_datagrams(verbs::CmId& request, const UdReceived& message, std::span<const uint8_t> reply) {
  make_room(ud_->connections);
  UdConnection* connection = UdConnection::accept(*this, request, message, reply);
  ud_->connections.push_back(connection);
  return *connection;
}

void Ep::answer_datagrams(UdConnection& connection) {
  remember_peer(connection.peer(), 0);
  update_datagrams();
  connection.begin_answer();
}

// Updates the state and the next deadline.
void Ep::update_datagrams() {
  EpState now = EpState::kUnconnected;
  int64_t deadline = kNever;
  for (const UdConnection* connection : ud_->connections) {
    if (!connection->pending()) continue;
    deadline = std::min(deadline, connection->deadline_ns());
    if (now != EpState::kActiveConnectionPending) {
      now = connection->passive() ? EpState::kCompletionPending : EpState::kActiveConnectionPending;
    }
  }
  set_deadline(deadline);
  if (ud_->established) now = EpState::kDatagrams;
  switch (state()) {
    case EpState::kUnconnected:
    case EpState::kActiveConnectionPending:
    case EpState::kCompletionPending:
    case EpState::kDatagrams:
      set_state(now);
      break;
    default:  // a reserved or failed endpoint keeps its state
      break;
  }
}

void Ep::serve_datagram_deadlines() {
  const int64_t now = now_ns();
  for (size_t i = 0; i < ud_->connections.size(); ++i) {
    UdConnection* connection = ud_->connections[i];
    if (connection->pending() && connection->deadline_ns() <= now) connection->on_deadline();
  }
  update_datagrams();
}

ibv_ah* Ep::add_address(verbs::Ah address) {
  try {
    ud_->addresses.add(address.get());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return address.release();
}

void Ep::on_datagrams(UdConnection& connection, EventKind kind) {
  if (kind == EventKind::kUdEstablished) {
    ud_->established = true;
    ia().counters().add(connection.passive() ? IaCounter::kPassiveEst : IaCounter::kActiveEst);
  }
  update_datagrams();  // this comes first: the consumer may send to an address as soon as the event reports it
  Event event{};
  event.kind = kind;
  event.datagrams = {this, &connection};
  evds_.connect->post(event);
}

Result<> Ep::free_connection(const void* wanted) {
  UdConnection* connection = arena<UdConnection>().find(wanted, Kind::kUdConnection);
  if (!ud_ || !connection || &connection->ep() != this) return fail(Type::kInvalidParameter, Subtype::kConnection);
  std::erase(ud_->connections, connection);
  UdConnection::free(*connection);
  update_datagrams();
  return {};
}

Result<> Ep::free_address(ibv_ah* address) {
  if (!ud_ || !ud_->addresses.remove(address)) return fail(Type::kInvalidParameter, Subtype::kAddress);
  if (int error = ibv_destroy_ah(address)) {
    ud_->addresses.add(address);  // its slot is still free, so this allocates nothing
    return fail_errno(error);
  }
  return {};
}

void Ep::drop_datagrams(uint32_t former_qp_num) {
  if (!ud_) return;
  ia().ud_replies().forget(former_qp_num);
  for (UdConnection* connection : ud_->connections) UdConnection::free(*connection);
  ud_->connections.clear();
  // Tried again at once, because no caller can free it later.
  ud_->addresses.clear([](ibv_ah* address) {
    if (ibv_destroy_ah(address)) ibv_destroy_ah(address);
  });
  ud_->established = false;
  set_deadline(kNever);
}

Result<> Ep::post_send_ud(std::span<const ibv_sge> segments, uint64_t cookie, ibv_ah* address, uint32_t qp_num,
                          uint32_t flags) {
  if (!ud_) return fail(Type::kInvalidHandle, Subtype::kHandleEp);
  if (segments.size() > attr_.max_request_iov) return fail(Type::kInvalidParameter, Subtype::kSegmentCount);
  if (!ud_->addresses.contains(address)) return fail(Type::kInvalidParameter, Subtype::kAddress);
  if (flags & ~request_flags()) return fail(Type::kInvalidParameter, Subtype::kFlags);
  uint64_t length = 0;
  for (const ibv_sge& segment : segments) length += segment.length;
  if (length > ia().mtu()) return fail(Type::kLengthError);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud.ah = address;
  wr.wr.ud.remote_qpn = qp_num;
  wr.wr.ud.remote_qkey = kQkey;
  return post_request(wr, segments, cookie, DtoOperation::kSendUd, flags);
}

}  // namespace dapple::udapl
