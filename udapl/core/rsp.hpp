// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "udapl/core/arena.hpp"
#include "udapl/core/ep.hpp"
#include "udapl/core/service_point.hpp"

namespace dapple::dat {

// Reserved service point: listens for one request, which takes the EP that was reserved for it. All calls are made
// with the control mutex held.
class Rsp : public ServicePoint {
 public:
  static constexpr Kind kKind = Kind::kRsp;

  // The EP must be UNCONNECTED, and is RESERVED from here on.
  static Result<Rsp*> create(Ia& ia, uint64_t conn_qual, Ep& ep, Evd& evd);
  // An EP that no request has taken is UNCONNECTED again.
  static Result<> free(Rsp& rsp);

  // The EP it was made with, for as long as there is one and it is not reserved anew.
  Ep* ep() const { return ep_; }
  // The EP while it waits for its request.
  Ep* reserved_ep() const { return ep_ && ep_->state() == EpState::kReserved ? ep_ : nullptr; }
  void forget_ep();

 private:
  friend class Arena<Rsp>;
  Rsp(Ia& ia, Ep& ep, Evd& evd);

  Ep* ep_;
};

}  // namespace dapple::dat
