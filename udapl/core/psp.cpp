// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/psp.hpp"

#include <netinet/in.h>

#include <cstring>

#include "udapl/core/connection_manager.hpp"
#include "udapl/core/cr.hpp"
#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"

namespace dapple::dat {
namespace {

constexpr int kBacklog = 128;

}  // namespace

Psp::Psp(Ia& ia, Evd& evd) : Object(ia.tables().live, kKind, &ia), evd_(evd) {}

Result<Psp*> Psp::create(Ia& ia, uint64_t conn_qual, Evd& evd) {
  Psp* psp = arena<Psp>().create(ia, evd);
  const auto give_up = [&](Error error) -> Result<Psp*> {
    arena<Psp>().destroy(psp, ia.tables().dead);
    return tl::unexpected(error);
  };
  psp->id_ = verbs::create_cm_id(ConnectionManager::instance().channel(), static_cast<Object*>(psp));
  if (!psp->id_) return give_up(fail_errno(errno).value());

  sockaddr_storage address{};
  std::memcpy(&address, ia.address(), verbs::address_size(ia.address()));
  // sin_port and sin6_port lie at the same place.
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(to_port(conn_qual));
  if (rdma_bind_addr(psp->id_.get(), reinterpret_cast<sockaddr*>(&address)) || rdma_listen(psp->id_.get(), kBacklog)) {
    return give_up(errno == EADDRINUSE ? Error{Type::kConnQualInUse} : Error{Type::kConnQualUnavailable});
  }
  psp->conn_qual_ = conn_qual ? conn_qual : ntohs(rdma_get_src_port(psp->id_.get()));
  ia.adopt(*psp);
  evd.acquire();
  return psp;
}

Result<> Psp::free(Psp& psp) {
  Ia& ia = psp.ia();
  psp.evd_.release();
  ia.disown(psp);
  arena<Psp>().destroy(&psp, ia.tables().dead);
  return {};
}

void Psp::on_request(const verbs::CmEvent& event) {
  verbs::CmId id(event.request);
  Cr* cr = nullptr;
  try {
    cr = Cr::create(*this, std::move(id), event);
  } catch (const std::bad_alloc&) {
    return;  // the id is gone with the request: the peer sees a rejection
  }
  Event arrival{};
  arrival.kind = EventKind::kConnectionRequest;
  arrival.cr = {this, cr, conn_qual_};
  if (!evd_.post(arrival)) (void)Cr::free(*cr);
}

}  // namespace dapple::dat
