// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/rsp.hpp"

#include <cassert>

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

Result<> Rsp::take_request(verbs::CmId& id, const verbs::CmEvent& event) {
  auto ep = ep_for(id, event);
  if (!ep) return tl::unexpected(ep.error());
  if (auto announced = announce(id, event, *ep, creates_ep_); !announced) {
    assert(creates_ep_ || ep_->state() == EpState::kUnconnected);
    if (!creates_ep_) ep_->connection().reserve(*this);
    return announced;
  }
  if (creates_ep_) {
    assert(!ep_);
    ep_ = *ep;
    ep_->connection().note_reservation(*this);
  }
  stop_listening();
  return {};
}

Result<Ep*> Rsp::ep_for(const verbs::CmId& id, const verbs::CmEvent& event) {
  const bool datagrams = asks_for_datagrams(id);
  const bool ready = creates_ep_ ? listening() && !datagrams
                                 : ep_ && ep_->state() == EpState::kReserved && ep_->is_datagrams() == datagrams;
  if (!ready) return fail(Type::kConnQualUnavailable);
  return creates_ep_ ? make_ep(id, event) : ep_;
}

void Rsp::forget_ep() {
  ep_ = nullptr;
  stop_listening();  // there is nothing left to take a request
}

}  // namespace dapple::udapl
