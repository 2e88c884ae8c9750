// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/endpoint/ep.hpp"

namespace dapple::udapl {

// Reserved service point: listens for one request, which takes the reserved EP, or comes with an EP of its own. All
// calls are made with the control mutex held.
class Rsp : public ServicePoint {
 public:
  static constexpr Kind kKind = Kind::kRsp;

  // The EP must be UNCONNECTED. It becomes RESERVED. With ep null the request comes with an EP that is not configured
  // yet.
  static Result<Rsp*> create(Ia& ia, uint64_t conn_qual, Ep* ep, Evd& evd);

  // The EP of the point or of its request, until that EP is freed or reserved again.
  Ep* ep() const { return ep_; }
  bool creates_ep() const { return creates_ep_; }
  // The EP that was made for the request.
  void note_made_ep(Ep& ep);
  // The EP while it waits for its request.
  Ep* reserved_ep() const { return ep_ && ep_->state() == EpState::kReserved ? ep_ : nullptr; }
  void forget_ep();

 private:
  friend class Arena<Rsp>;
  Rsp(Ia& ia, Evd& evd, bool creates_ep);
  // If no request has taken the EP, it becomes UNCONNECTED again.
  ~Rsp();

  const bool creates_ep_;
  Ep* ep_ = nullptr;
};

}  // namespace dapple::udapl
