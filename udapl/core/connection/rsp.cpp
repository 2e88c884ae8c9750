// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/rsp.hpp"

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

Rsp::Rsp(Ia& ia, Ep& ep, Evd& evd) : ServicePoint(ia, kKind, evd), ep_(&ep) {}

Result<Rsp*> Rsp::create(Ia& ia, uint64_t conn_qual, Ep& ep, Evd& evd) {
  if (auto free = ep.check_state(EpState::kUnconnected); !free) return tl::unexpected(free.error());
  Rsp* rsp = arena<Rsp>().create(ia, ep, evd);
  rsp->conn_qual_ = conn_qual;
  if (auto listening = ep.is_datagrams() ? rsp->listen_for_datagrams() : rsp->listen(conn_qual); !listening) {
    arena<Rsp>().destroy(rsp, ia.tables().dead);
    return tl::unexpected(listening.error());
  }
  ia.adopt(*rsp);
  evd.acquire();
  ep.connection().reserve(*rsp);
  return rsp;
}

Result<> Rsp::free(Rsp& rsp) {
  if (rsp.ep_) rsp.ep_->connection().release(rsp);
  rsp.evd_.release();
  rsp.ia().destroy(rsp);
  return {};
}

void Rsp::forget_ep() {
  ep_ = nullptr;
  stop_listening();  // there is nothing left to take a request
}

}  // namespace dapple::udapl
