// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/ud_connection.hpp"

#include <endian.h>
#include <sys/random.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "udapl/core/connection/connect_log.hpp"
#include "udapl/core/connection/datagrams.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/pz.hpp"

namespace dapple::udapl {
namespace {

// The index of a GID in the port's table. On some devices RoCE has each GID twice; Linux connects over version 2.
// Empty, with errno set, if there is none, or if an entry that might be the right one cannot be read.
std::optional<uint8_t> gid_index(const Ia& ia, const ibv_gid& gid) {
  std::optional<uint8_t> found;
  for (int i = 0; i < ia.port_attr().gid_tbl_len && i <= UINT8_MAX; ++i) {
    ibv_gid_entry entry{};
    const int error = ibv_query_gid_ex(ia.context(), ia.port(), static_cast<uint32_t>(i), &entry, 0);
    if (error == ENODATA) continue;  // this entry is empty
    if (error) {
      errno = error;
      return std::nullopt;
    }
    if (std::memcmp(&entry.gid, &gid, sizeof gid) != 0) continue;
    if (!found || entry.gid_type == IBV_GID_TYPE_ROCE_V2) found = static_cast<uint8_t>(i);
  }
  if (!found) errno = EADDRNOTAVAIL;
  return found;
}

// The address at the end of a route. It needs a global address across a router and on Ethernet. Empty, with errno set,
// if there is none.
std::optional<ibv_ah_attr> to_address(const Ia& ia, const rdma_cm_id& id) {
  if (id.route.num_paths < 1) {
    errno = ENETUNREACH;
    return std::nullopt;
  }
  const ibv_sa_path_rec& path = id.route.path_rec[0];
  ibv_ah_attr attr{};
  attr.port_num = ia.port();
  attr.dlid = be16toh(path.dlid);
  attr.sl = path.sl;
  attr.src_path_bits = static_cast<uint8_t>(be16toh(path.slid) & 0x7f);
  attr.static_rate = path.rate;
  if (ia.port_attr().link_layer == IBV_LINK_LAYER_ETHERNET || path.hop_limit > 1) {
    const auto index = gid_index(ia, path.sgid);
    if (!index) return std::nullopt;
    attr.is_global = 1;
    attr.grh.dgid = path.dgid;
    attr.grh.sgid_index = *index;
    attr.grh.flow_label = be32toh(path.flow_label);
    attr.grh.hop_limit = path.hop_limit > 1 ? path.hop_limit : 64;
    attr.grh.traffic_class = path.traffic_class;
  }
  return attr;
}

// Another process, or this one a day later, starts from another value.
uint32_t next_serial() {
  static uint32_t serial = [] {
    uint32_t first = 0;
    if (getrandom(&first, sizeof first, GRND_NONBLOCK) != sizeof first) first = static_cast<uint32_t>(now_ns());
    return first;
  }();
  return ++serial;
}

}  // namespace

UdConnection::UdConnection(Datagrams& of, bool passive, const sockaddr* peer)
    : Object(of.ep().ia().tables().dead, kKind, &of.ep().ia()),
      of_(of),
      client_(*this),
      passive_(passive),
      arp_retries_left_(ia().settings().arp_retries),
      route_retries_left_(ia().settings().route_retries),
      peer_(peer) {}

Result<UdConnection*> UdConnection::connect(Datagrams& of, const sockaddr* peer, uint32_t timeout_us,
                                            std::span<const uint8_t> data) {
  UdConnection* connection = arena<UdConnection>().create(of, false, peer);
  connection->outgoing_ = UdMessage(of.ep().qp_num(), next_serial(), data);
  if (timeout_us != Evd::kInfinite) connection->client_.set_deadline(now_ns() + int64_t{timeout_us} * 1000);
  if (auto started = connection->start(); !started) {
    free(*connection);
    return tl::unexpected(started.error());
  }
  of.ep().ia().counters().add(IaCounter::kAhReqTx);
  return connection;
}

UdConnection* UdConnection::accept(Datagrams& of, verbs::CmId& request, const UdReceived& message,
                                   std::span<const uint8_t> reply) {
  UdConnection* connection = arena<UdConnection>().create(of, true, rdma_get_peer_addr(request.get()));
  connection->request_ = std::move(request);
  connection->request_->context = static_cast<Object*>(connection);
  connection->serial_ = message.serial;
  connection->outgoing_ = UdMessage(of.ep().qp_num(), message.serial, reply);
  connection->qp_num_ = message.qp_num;
  connection->private_data_.assign(message.data);
  return connection;
}

void UdConnection::free(UdConnection& connection) {
  arena<UdConnection>().destroy(&connection, connection.ia().tables().dead);
}

Result<> UdConnection::start() {
  assert(pending_ && !id_);
  id_ = ConnectionManager::instance().new_id(*this, RDMA_PS_UDP);
  if (!id_) return fail_errno(errno);
  const int traffic_class = ia().settings().traffic_class;
  if (traffic_class >= 0) {
    auto value = static_cast<uint8_t>(traffic_class);
    rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, sizeof value);
  }
  if (!resolve_address()) return fail_errno(errno);
  return {};
}

void UdConnection::begin_answer() {
  assert(passive_ && request_);
  if (!start()) fail("looking for the route back", -errno);
}

void UdConnection::fail(const char* what, int status) {
  log_failure(what, status);
  end(EventKind::kUdError);
}

void UdConnection::log_failure(const char* what, int status) const {
  log_failed_connect(ia(), peer(), peer_.port(), what, status);
}

verbs::Ah UdConnection::make_address(ibv_ah_attr attr) const {
  const Settings& settings = ia().settings();
  if (settings.service_level >= 0) attr.sl = static_cast<uint8_t>(settings.service_level);
  if (settings.hop_limit >= 0) attr.grh.hop_limit = static_cast<uint8_t>(settings.hop_limit);
  return verbs::Ah(ibv_create_ah(of_.ep().pz()->pd(), &attr));
}

bool UdConnection::resolve_address() {
  verbs::SocketAddress source(ia().address());
  verbs::SocketAddress target = peer_;
  return rdma_resolve_addr(id_.get(), source.get(), target.get(), ia().settings().arp_timeout_ms) == 0;
}

bool UdConnection::resolve_route() {
  return rdma_resolve_route(id_.get(), ia().settings().route_timeout_ms) == 0;
}

bool UdConnection::ask() {
  rdma_conn_param param{};
  param.private_data = outgoing_.data();
  param.private_data_len = outgoing_.size();
  param.qp_num = of_.ep().qp_num();
  return rdma_connect(id_.get(), &param) == 0;
}

// The peer learns our queue pair only after we know where to send, so a missing way back is not reported to it as
// success.
bool UdConnection::answer() {
  assert(passive_ && id_ && request_);
  const auto address = to_address(ia(), *id_);
  if (!address) return false;
  rdma_conn_param param{};
  param.private_data = outgoing_.data();
  param.private_data_len = outgoing_.size();
  param.qp_num = of_.ep().qp_num();
  verbs::Ah handle = make_address(*address);
  if (!handle || rdma_accept(request_.get(), &param)) return false;
  ia().counters().add(IaCounter::kRepTx);
  ia().ud_replies().remember({peer_, qp_num_, serial_, of_.ep().qp_num(), now_ns(), outgoing_});
  establish(std::move(handle), qp_num_);
  return true;
}

void UdConnection::establish(verbs::Ah handle, uint32_t qp_num) {
  assert(pending_ && handle && !address_handle_);
  qp_num_ = qp_num;
  address_handle_ = of_.add_address(std::move(handle));
  if (!address_handle_) return fail("keeping the address", -ENOMEM);
  ia().counters().add(IaCounter::kAhResolved);
  end(EventKind::kUdEstablished);
}

// No more events are wanted: the ids are destroyed, which rejects a request that was not answered yet.
void UdConnection::end(EventKind kind) {
  assert(pending_);
  pending_ = false;
  client_.set_deadline(kNever);
  id_.reset();
  request_.reset();
  of_.on_end(*this, kind);
}

void UdConnection::on_connection_event(const verbs::CmEvent& event) {
  if (!pending_) return;
  const std::span<const uint8_t> data = event.private_data;
  bool going = true;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      going = resolve_route();
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
      going = event.status == -ETIMEDOUT && arp_retries_left_-- > 0 && resolve_address();
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      going = passive_ ? answer() : ask();
      break;
    case RDMA_CM_EVENT_ROUTE_ERROR:
      going = event.status == -ETIMEDOUT && route_retries_left_-- > 0 && resolve_route();
      break;
    case RDMA_CM_EVENT_ESTABLISHED: {
      ia().counters().add(IaCounter::kRepRx);
      // A peer with another provider also sends a queue pair and private data.
      const UdReceived message(data);
      private_data_.assign(message.ours ? message.data : data);
      verbs::Ah handle = make_address(event.ah_attr);
      if (!handle) return fail("ibv_create_ah", -errno);
      return establish(std::move(handle), event.qp_num);
    }
    case RDMA_CM_EVENT_UNREACHABLE: {
      // IBTA 12.11.2.4: a status comes from the peer; time-outs are errno values below 0. A rejection with our header
      // comes from the peer's consumer.
      if (event.status <= 0) return fail(rdma_event_str(event.type), event.status);
      log_failure(rdma_event_str(event.type), event.status);
      const UdReceived message(data);
      ia().counters().add(message.ours ? IaCounter::kUserRejRx : IaCounter::kErrRejRx);
      private_data_.assign(message.data);
      return end(EventKind::kUdRejected);
    }
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      going = false;
      break;
    default:
      break;
  }
  if (!going) fail(rdma_event_str(event.type), event.status ? event.status : -errno);
}

void UdConnection::on_deadline() {
  assert(pending_ && !passive_);
  ia().counters().add(IaCounter::kErrTimeout);
  fail("the consumer's time-out", -ETIMEDOUT);
}

}  // namespace dapple::udapl
