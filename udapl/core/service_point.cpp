// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/service_point.hpp"

#include <netinet/in.h>

#include <cstring>

#include "udapl/core/connection_manager.hpp"
#include "udapl/core/cr.hpp"
#include "udapl/core/csp.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"
#include "udapl/core/psp.hpp"
#include "udapl/core/rsp.hpp"

namespace dapple::dat {
namespace {

constexpr int kBacklog = 128;

}  // namespace

ServicePoint::ServicePoint(Ia& ia, Kind kind, Evd& evd) : Object(ia.tables().live, kind, &ia), evd_(evd) {}

Result<> ServicePoint::listen(uint64_t conn_qual) {
  sockaddr_storage address{};
  std::memcpy(&address, ia().address(), verbs::address_size(ia().address()));
  // sin_port and sin6_port lie at the same place.
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(to_port(conn_qual));
  if (auto listening = listen_at(reinterpret_cast<const sockaddr*>(&address)); !listening) return listening;
  if (conn_qual) conn_qual_ = conn_qual;
  return {};
}

Result<> ServicePoint::listen_at(const sockaddr* address) {
  id_ = verbs::create_cm_id(ConnectionManager::instance().channel(), static_cast<Object*>(this));
  if (!id_) return fail_errno(errno);
  if (rdma_bind_addr(id_.get(), const_cast<sockaddr*>(address)) || rdma_listen(id_.get(), kBacklog)) {
    if (is_shortage(errno)) return fail_errno(errno);
    return fail(errno == EADDRINUSE ? Type::kConnQualInUse : Type::kConnQualUnavailable);
  }
  conn_qual_ = ntohs(rdma_get_src_port(id_.get()));
  ia().counters().add(IaCounter::kListen);
  return {};
}

Result<> ServicePoint::free(ServicePoint& point) {
  switch (point.kind()) {
    case Kind::kPsp:
      return Psp::free(static_cast<Psp&>(point));
    case Kind::kRsp:
      return Rsp::free(static_cast<Rsp&>(point));
    default:
      return Csp::free(static_cast<Csp&>(point));
  }
}

void ServicePoint::on_request(const verbs::CmEvent& event) {
  verbs::CmId id(event.request);
  ia().counters().add(IaCounter::kReqRx);
  try {
    // When it is not taken the id goes here, and the peer sees a rejection that is not the consumer's.
    (void)take(id, event);
  } catch (const std::bad_alloc&) {
  }
}

Result<> ServicePoint::take(verbs::CmId& id, const verbs::CmEvent& event) {
  Ep* ep = nullptr;
  if (kind() == Kind::kRsp) {
    ep = static_cast<Rsp*>(this)->reserved_ep();
    if (!ep) return fail(Type::kConnQualUnavailable);
  } else if (kind() == Kind::kPsp && static_cast<Psp*>(this)->creates_eps()) {
    auto created = Ep::create(ia(), nullptr, {}, {});
    if (!created) return tl::unexpected(created.error());
    ep = *created;
  }
  const bool provider_made = ep && kind() == Kind::kPsp;
  Cr* cr = nullptr;
  try {
    cr = Cr::create(ia(), id, event);
  } catch (const std::bad_alloc&) {
    if (provider_made) (void)Ep::free(*ep);
    throw;
  }
  if (ep) cr->hold(*ep, provider_made);
  Event arrival{};
  arrival.kind = EventKind::kConnectionRequest;
  arrival.cr = {this, cr, conn_qual_};
  if (!evd_.post(arrival)) {
    id = cr->give_up_id();
    (void)Cr::free(*cr);
    if (ep && !provider_made) ep->reserve();
    return fail(Type::kInsufficientResources, Subtype::kMemory);
  }
  ia().counters().add(IaCounter::kRequest);
  if (kind() == Kind::kRsp) stop_listening();
  return {};
}

}  // namespace dapple::dat
