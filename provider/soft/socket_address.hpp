// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_SOCKET_ADDRESS_HPP
#define DAPPLE_PROVIDER_SOFT_SOCKET_ADDRESS_HPP

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

#include "provider/soft/gid.hpp"

namespace dapple::soft {

// An address and port, as the kernel's calls want them.
struct SocketAddress {
  sockaddr_in6 bytes = {};  // or a sockaddr_in
  socklen_t size = 0;

  bool ipv6() const { return bytes.sin6_family == AF_INET6; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
  // The port lies at the same place for both families.
  void set_port(uint16_t port) { bytes.sin6_port = htons(port); }
};

// `netdev_index` is the scope of a link-local address.
inline SocketAddress socket_address(const uint8_t gid[16], uint32_t netdev_index, uint16_t port) {
  SocketAddress address;
  if (is_ipv4(gid)) {
    auto& in = reinterpret_cast<sockaddr_in&>(address.bytes);
    in.sin_family = AF_INET;
    memcpy(&in.sin_addr, gid + 12, 4);
    address.size = sizeof in;
  } else {
    address.bytes.sin6_family = AF_INET6;
    memcpy(&address.bytes.sin6_addr, gid, 16);
    address.bytes.sin6_scope_id = is_link_local(gid) ? netdev_index : 0;
    address.size = sizeof address.bytes;
  }
  address.set_port(port);
  return address;
}

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_SOCKET_ADDRESS_HPP
