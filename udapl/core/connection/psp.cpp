// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/psp.hpp"

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

namespace {

constexpr int kOtherPorts = 16;

}  // namespace

Psp::Psp(Ia& ia, Evd& evd, bool creates_eps) : ServicePoint(ia, kKind, evd), creates_eps_(creates_eps) {}

Result<Psp*> Psp::create(Ia& ia, uint64_t conn_qual, Evd& evd, bool creates_eps) {
  Psp* psp = arena<Psp>().create(ia, evd, creates_eps);
  auto listening = psp->listen(conn_qual);
  if (listening && ia.serves_datagrams()) {
    listening = psp->listen_for_datagrams();
    // A port that is free for connections may be in use for datagrams.
    const auto taken = [&] { return !listening && listening.error().type == Type::kConnQualInUse; };
    for (int tries = 0; taken() && conn_qual == 0 && tries < kOtherPorts; ++tries) {
      psp->stop_listening();
      listening = psp->listen(0);
      if (listening) listening = psp->listen_for_datagrams();
    }
  }
  if (listening) ia.counters().add(conn_qual ? IaCounter::kPspCreate : IaCounter::kPspCreateAny);
  return finish(*psp, listening);
}

Result<> Psp::take_request(verbs::CmId& id, const verbs::CmEvent& event) {
  if (!creates_eps_) return announce(id, event, nullptr, false);
  auto ep = make_ep(id, event);
  if (!ep) return tl::unexpected(ep.error());
  return announce(id, event, *ep, true);
}

}  // namespace dapple::udapl
