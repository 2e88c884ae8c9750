// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Addresses of hosts and ports, of the families that RDMA routes.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace dapple::verbs {

// The length of an address by its family; 0 for a family that RDMA does not route.
inline socklen_t address_size(const sockaddr* address) noexcept {
  switch (address->sa_family) {
    case AF_INET:
      return sizeof(sockaddr_in);
    case AF_INET6:
      return sizeof(sockaddr_in6);
    default:
      return 0;
  }
}

// True if both addresses have the same host, with any ports.
inline bool same_address(const sockaddr* a, const sockaddr* b) noexcept {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

inline bool is_loopback(const sockaddr* address) noexcept {
  if (address->sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// A copy of an address, with a port in the CPU's byte order. Without an address, its family is AF_UNSPEC.
class SocketAddress {
 public:
  SocketAddress() = default;
  explicit SocketAddress(const sockaddr* from) { std::memcpy(&storage_, from, address_size(from)); }
  SocketAddress(const sockaddr* from, uint16_t port) : SocketAddress(from) { set_port(port); }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }
  sa_family_t family() const { return storage_.ss_family; }
  // sin_port and sin6_port lie at the same place.
  uint16_t port() const { return ntohs(reinterpret_cast<const sockaddr_in&>(storage_).sin_port); }
  void set_port(uint16_t port) { reinterpret_cast<sockaddr_in&>(storage_).sin_port = htons(port); }

 private:
  sockaddr_storage storage_{};
};

}  // namespace dapple::verbs
