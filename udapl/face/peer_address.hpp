// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <netinet/in.h>

#include <cstring>

namespace dapple::face {

// The address of a peer as consumers hand it over. The original always took it for IPv4 and some consumers leave the
// family unset, so only AF_INET6 means anything else; that is also the only case in which 28 bytes are read.
inline sockaddr_storage peer_address(const sockaddr& given) noexcept {
  sockaddr_storage address{};
  const bool ipv6 = given.sa_family == AF_INET6;
  std::memcpy(&address, &given, ipv6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  address.ss_family = ipv6 ? AF_INET6 : AF_INET;
  return address;
}

}  // namespace dapple::face
