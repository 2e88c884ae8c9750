// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/csp.hpp"

#include <cstring>

#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {
namespace {

bool is_any(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr == INADDR_ANY;
  const in6_addr& host = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return address->sa_family == AF_INET6 && std::memcmp(&host, &in6addr_any, sizeof host) == 0;
}

}  // namespace

Csp::Csp(Ia& ia, const Comm& comm, Evd& evd) : ServicePoint(ia, kKind, evd), comm_(comm) {}

Result<Csp*> Csp::create(Ia& ia, const Comm& comm, const sockaddr* address, Evd& evd) {
  if (!is_supported(comm, ia.address()->sa_family)) return fail(Type::kCommNotSupported);
  const bool is_ours =
      address->sa_family == ia.address()->sa_family && (is_any(address) || verbs::same_address(address, ia.address()));
  if (!is_ours) return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
  Csp* csp = arena<Csp>().create(ia, comm, evd);
  csp->address_ = verbs::SocketAddress(ia.address(), verbs::SocketAddress(address).port());
  auto made = finish(*csp, csp->listen_at(csp->address()));
  if (!made && made.error().type == Type::kConnQualInUse) return fail(Type::kPortInUse);
  if (made) csp->address_.set_port(static_cast<uint16_t>(csp->conn_qual()));
  return made;
}

Result<> Csp::take_request(verbs::CmId& id, const verbs::CmEvent& event) {
  if (asks_for_datagrams(id)) return fail(Type::kConnQualUnavailable);
  return announce(id, event, nullptr, false);
}

}  // namespace dapple::udapl
