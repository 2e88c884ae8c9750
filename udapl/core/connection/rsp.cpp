// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/rsp.hpp"

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

Rsp::Rsp(Ia& ia, Evd& evd, bool creates_ep) : ServicePoint(ia, kKind, evd), creates_ep_(creates_ep) {}

Rsp::~Rsp() {
  if (ep_) ep_->connection().release(*this);
}

Result<Rsp*> Rsp::create(Ia& ia, uint64_t conn_qual, Ep* ep, Evd& evd) {
  if (ep) {
    if (auto free = ep->check_state(EpState::kUnconnected); !free) return tl::unexpected(free.error());
  }
  Rsp* rsp = arena<Rsp>().create(ia, evd, ep == nullptr);
  rsp->conn_qual_ = conn_qual;
  auto made = finish(*rsp, ep && ep->is_datagrams() ? rsp->listen_for_datagrams() : rsp->listen(conn_qual));
  if (!made || !ep) return made;
  rsp->ep_ = ep;
  ep->connection().reserve(*rsp);
  return made;
}

void Rsp::note_made_ep(Ep& ep) {
  ep_ = &ep;
  ep.connection().note_reservation(*this);
}

void Rsp::forget_ep() {
  ep_ = nullptr;
  stop_listening();  // there is nothing left to take a request
}

}  // namespace dapple::udapl
