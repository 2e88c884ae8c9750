// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/psp.hpp"

#include "udapl/core/evd.hpp"
#include "udapl/core/ia.hpp"

namespace dapple::dat {

Psp::Psp(Ia& ia, Evd& evd, bool creates_eps) : ServicePoint(ia, kKind, evd), creates_eps_(creates_eps) {}

Result<Psp*> Psp::create(Ia& ia, uint64_t conn_qual, Evd& evd, bool creates_eps) {
  Psp* psp = arena<Psp>().create(ia, evd, creates_eps);
  if (auto listening = psp->listen(conn_qual); !listening) {
    arena<Psp>().destroy(psp, ia.tables().dead);
    return tl::unexpected(listening.error());
  }
  ia.adopt(*psp);
  evd.acquire();
  return psp;
}

Result<> Psp::free(Psp& psp) {
  Ia& ia = psp.ia();
  psp.evd_.release();
  ia.disown(psp);
  arena<Psp>().destroy(&psp, ia.tables().dead);
  return {};
}

}  // namespace dapple::dat
