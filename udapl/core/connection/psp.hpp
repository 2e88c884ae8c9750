// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "udapl/core/connection/service_point.hpp"

namespace dapple::udapl {

// Public service point: listens until it is freed. All calls are made with the control mutex held.
class Psp : public ServicePoint {
 public:
  static constexpr Kind kKind = Kind::kPsp;

  // With conn_qual 0 the system chooses. creates_eps: each request comes with its own EP, which is not configured yet.
  static Result<Psp*> create(Ia& ia, uint64_t conn_qual, Evd& evd, bool creates_eps);

  bool creates_eps() const { return creates_eps_; }

  // See ServicePoint::take().
  Result<> take_request(verbs::CmId& id, const verbs::CmEvent& event);

 private:
  friend class Arena<Psp>;
  Psp(Ia& ia, Evd& evd, bool creates_eps);

  const bool creates_eps_;
};

}  // namespace dapple::udapl
