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
  void forget_ep();

  // See ServicePoint::take(). Stops listening after its one request.
  Result<> take_request(verbs::CmId& id, const verbs::CmEvent& event);

 private:
  friend class Arena<Rsp>;
  Rsp(Ia& ia, Evd& evd, bool creates_ep);
  // If no request has taken the EP, it becomes UNCONNECTED again.
  ~Rsp();

  // The EP for this request: the reserved one, which still waits, or a new one.
  Result<Ep*> ep_for(const verbs::CmId& id, const verbs::CmEvent& event);

  const bool creates_ep_;
  Ep* ep_ = nullptr;
};

}  // namespace dapple::udapl
