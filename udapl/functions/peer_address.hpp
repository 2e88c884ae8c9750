// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <netinet/in.h>

#include <cstring>

#include "ibverbs-glue/socket_address.hpp"

namespace dapple::udapl::functions {

// The address of a peer from a consumer. The original always took it for IPv4, and some consumers leave the family
// unset, so every family but AF_INET6 means IPv4. The function reads 28 bytes only for AF_INET6.
inline verbs::SocketAddress peer_address(const sockaddr& given) noexcept {
  sockaddr_storage address{};
  const bool ipv6 = given.sa_family == AF_INET6;
  std::memcpy(&address, &given, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  address.ss_family = ipv6 ? AF_INET6 : AF_INET;
  return verbs::SocketAddress(reinterpret_cast<const sockaddr*>(&address));
}

}  // namespace dapple::udapl::functions
