// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/rsp.hpp"

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

Rsp::Rsp(Ia& ia, Evd& evd) : ServicePoint(ia, kKind, evd) {}

Rsp::~Rsp() {
  if (ep_) ep_->connection().release(*this);
}

Result<Rsp*> Rsp::create(Ia& ia, uint64_t conn_qual, Ep& ep, Evd& evd) {
  if (auto free = ep.check_state(EpState::kUnconnected); !free) return tl::unexpected(free.error());
  Rsp* rsp = arena<Rsp>().create(ia, evd);
  rsp->conn_qual_ = conn_qual;
  auto made = finish(*rsp, ep.is_datagrams() ? rsp->listen_for_datagrams() : rsp->listen(conn_qual));
  if (!made) return made;
  rsp->ep_ = &ep;
  ep.connection().reserve(*rsp);
  return made;
}

void Rsp::forget_ep() {
  ep_ = nullptr;
  stop_listening();  // there is nothing left to take a request
}

}  // namespace dapple::udapl
