// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

// Protection zone: one verbs protection domain. Immutable.
class Pz : public Object {
 public:
  static constexpr Kind kKind = Kind::kPz;

  // The caller holds the control mutex.
  static Result<Pz*> create(Ia& ia);
  // INVALID_STATE while an EP, LMR, RMR or SRQ belongs to it. The caller holds the control mutex.
  static Result<> free(Pz& pz);

  ibv_pd* pd() const { return pd_.get(); }

 private:
  friend class Arena<Pz>;
  Pz(Ia& ia, verbs::Pd pd);
  verbs::Pd pd_;
};

}  // namespace dapple::udapl
