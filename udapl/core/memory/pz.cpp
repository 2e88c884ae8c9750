// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/memory/pz.hpp"

#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

Pz::Pz(Ia& ia, verbs::Pd pd) : Object(ia.tables().live, kKind, &ia), pd_(std::move(pd)) {}

Result<Pz*> Pz::create(Ia& ia) {
  verbs::Pd pd(ibv_alloc_pd(ia.context()));
  if (!pd) return fail_errno(errno);
  Pz* pz = arena<Pz>().create(ia, std::move(pd));
  ia.adopt(*pz);
  return pz;
}

Result<> Pz::free(Pz& pz) {
  if (pz.in_use()) return fail(Type::kInvalidState, Subtype::kPzInUse);
  if (int error = verbs::destroy(pz.pd_)) return fail_errno(error);
  pz.ia().destroy(pz);
  return {};
}

}  // namespace dapple::udapl
