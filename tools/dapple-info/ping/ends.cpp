// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/ends.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "provider/protocol/messages.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::info {
namespace {

using soft::OwnedFd;

bool same_host(const Address& a, const sockaddr& b) {
  if (a.any.sa_family != b.sa_family) return false;
  if (b.sa_family == AF_INET) {
    return a.in.sin_addr.s_addr == reinterpret_cast<const sockaddr_in&>(b).sin_addr.s_addr;
  }
  return std::memcmp(&a.in6.sin6_addr, &reinterpret_cast<const sockaddr_in6&>(b).sin6_addr, 16) == 0;
}

std::string netdev_with(const Address& local) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> guard(list, &freeifaddrs);
  const uint32_t scope = local.any.sa_family == AF_INET6 ? local.in6.sin6_scope_id : 0;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || !same_host(local, *entry->ifa_addr)) continue;
    if (scope == 0 || if_nametoindex(entry->ifa_name) == scope) return entry->ifa_name;
  }
  // All of 127.0.0.0/8 belongs to the loopback device.
  const bool loopback = local.any.sa_family == AF_INET && ntohl(local.in.sin_addr.s_addr) >> 24 == 127;
  return loopback ? "lo" : "";
}

}  // namespace

socklen_t size_of_address(const Address& address) {
  return address.any.sa_family == AF_INET ? sizeof address.in : sizeof address.in6;
}

Address with_port(const Address& address, uint16_t port) {
  Address copy = address;
  (copy.any.sa_family == AF_INET ? copy.in.sin_port : copy.in6.sin6_port) = htons(port);
  return copy;
}

Gid16 gid_of(const Address& address) {
  Gid16 gid{};
  if (address.any.sa_family == AF_INET) {
    gid[10] = gid[11] = 0xFF;
    std::memcpy(&gid[12], &address.in.sin_addr, 4);
  } else {
    std::memcpy(gid.data(), &address.in6.sin6_addr, 16);
  }
  return gid;
}

std::string text_of(const Address& address) {
  char text[NI_MAXHOST];
  const int code = getnameinfo(&address.any, size_of_address(address), text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? text : "";
}

std::string resolve(const std::string& name, Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (const int code = getaddrinfo(name.c_str(), nullptr, &hints, &list)) {
    return code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> guard(list, &freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    std::memcpy(&address, entry->ai_addr, std::min<size_t>(entry->ai_addrlen, sizeof address));
    return {};
  }
  return "the name has no IP address";
}

Route route_to(const Address& peer) {
  Route route;
  const OwnedFd fd(socket(peer.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Address to = with_port(peer, soft::kRocePort);
  socklen_t size = sizeof route.local;
  // connect() on a UDP socket sends nothing.
  if (!fd || connect(fd.get(), &to.any, size_of_address(to)) != 0 ||
      getsockname(fd.get(), &route.local.any, &size) != 0) {
    route.error = errno;
    return route;
  }
  route.netdev = netdev_with(route.local);
  ifreq request{};
  std::memcpy(request.ifr_name, route.netdev.c_str(), std::min<size_t>(route.netdev.size(), IFNAMSIZ - 1));
  if (ioctl(fd.get(), SIOCGIFMTU, &request) == 0) route.netdev_mtu = static_cast<unsigned int>(request.ifr_mtu);
  return route;
}

}  // namespace dapple::info
