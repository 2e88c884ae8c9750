// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/socket.h>

#include "udapl/core/connection/comm.hpp"
#include "udapl/core/connection/service_point.hpp"

namespace dapple::udapl {

// Common service point: listens at a socket address until it is freed. All calls are made with the control mutex held.
class Csp : public ServicePoint {
 public:
  static constexpr Kind kKind = Kind::kCsp;

  // COMM_NOT_SUPPORTED for a comm that rdma_cm lacks; INVALID_ADDRESS for an address that is not the IA's (all zeroes
  // mean the IA's); PORT_IN_USE. With port 0 the system chooses the port.
  static Result<Csp*> create(Ia& ia, const Comm& comm, const sockaddr* address, Evd& evd);

  const Comm& comm() const { return comm_; }
  const sockaddr* address() const { return address_.get(); }

  // See ServicePoint::take(). Takes no request for datagrams.
  Result<> take_request(verbs::CmId& id, const verbs::CmEvent& event);

 private:
  friend class Arena<Csp>;
  Csp(Ia& ia, const Comm& comm, Evd& evd);

  const Comm comm_;
  verbs::SocketAddress address_;
};

}  // namespace dapple::udapl
