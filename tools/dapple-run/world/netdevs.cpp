// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/world/netdevs.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>

#include "provider/network/gid.hpp"

namespace dapple::run {
namespace {

void add(face::RailNetdev& netdev, const sockaddr& address) {
  uint8_t gid[16];
  if (address.sa_family == AF_INET) {
    soft::ipv4_gid(&reinterpret_cast<const sockaddr_in&>(address).sin_addr, gid);
    netdev.add(gid);
  } else if (address.sa_family == AF_INET6) {
    netdev.add(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr.s6_addr);
  }
}

}  // namespace

std::vector<face::RailNetdev> netdevs() {
  std::vector<face::RailNetdev> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    auto netdev = std::ranges::find(found, entry->ifa_name, &face::RailNetdev::name);
    if (netdev == found.end()) {
      found.push_back({});
      netdev = found.end() - 1;
      netdev->name = entry->ifa_name;
      netdev->loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    }
    if (entry->ifa_addr != nullptr) add(*netdev, *entry->ifa_addr);
  }
  freeifaddrs(list);
  return found;
}

}  // namespace dapple::run
