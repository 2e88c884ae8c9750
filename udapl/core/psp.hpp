// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "ibverbs-glue/rdma_cm.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::dat {

class Evd;

// Public service point: a listener. All calls are made with the control mutex held.
class Psp : public Object {
 public:
  static constexpr Kind kKind = Kind::kPsp;

  // CONN_QUAL_IN_USE when somebody listens there already. conn_qual 0 lets the system choose.
  static Result<Psp*> create(Ia& ia, uint64_t conn_qual, Evd& evd);
  // Requests that have arrived stay valid.
  static Result<> free(Psp& psp);

  uint64_t conn_qual() const { return conn_qual_; }
  Evd& evd() const { return evd_; }

  void on_request(const verbs::CmEvent& event);

 private:
  friend class Arena<Psp>;
  Psp(Ia& ia, Evd& evd);

  Evd& evd_;
  uint64_t conn_qual_ = 0;
  verbs::CmId id_;
};

// The port a connection qualifier stands for, as every rdma_cm provider of uDAPL computes it.
inline uint16_t to_port(uint64_t conn_qual) {
  constexpr uint64_t kSpan = 32001;
  constexpr uint64_t kBase = 65535 - kSpan;
  return static_cast<uint16_t>(conn_qual <= 0xffff ? conn_qual : conn_qual % kSpan + kBase);
}

}  // namespace dapple::dat
