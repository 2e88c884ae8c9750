// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/endpoint/ep.hpp"

namespace dapple::udapl {

// Reserved service point: listens for one request, which takes the reserved EP. All calls are made with the control
// mutex held.
class Rsp : public ServicePoint {
 public:
  static constexpr Kind kKind = Kind::kRsp;

  // The EP must be UNCONNECTED. It becomes RESERVED.
  static Result<Rsp*> create(Ia& ia, uint64_t conn_qual, Ep& ep, Evd& evd);

  // The EP with which it was made, until that EP is freed or reserved again.
  Ep* ep() const { return ep_; }
  // The EP while it waits for its request.
  Ep* reserved_ep() const { return ep_ && ep_->state() == EpState::kReserved ? ep_ : nullptr; }
  void forget_ep();

 private:
  friend class Arena<Rsp>;
  Rsp(Ia& ia, Evd& evd);
  // If no request has taken the EP, it becomes UNCONNECTED again.
  ~Rsp();

  Ep* ep_ = nullptr;
};

}  // namespace dapple::udapl
