// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/group_sockets.hpp"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <cassert>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/network/gid.hpp"

namespace dapple::soft {
namespace {

constexpr int kIpv6MulticastAll = 29;  // IPV6_MULTICAST_ALL of <linux/in6.h>
#ifdef SO_NETNS_COOKIE
constexpr int kNetworkNamespace = SO_NETNS_COOKIE;
#else
constexpr int kNetworkNamespace = 71;
#endif

// 0 if the kernel is older than 5.14.
uint64_t namespace_of(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  return getsockopt(socket, SOL_SOCKET, kNetworkNamespace, &cookie, &size) == 0 ? cookie : 0;
}

template <typename Request>
int set(int socket, int level, int option, const Request& request) {
  return setsockopt(socket, level, option, &request, sizeof request) == 0 ? 0 : errno;
}

int change(int socket, const uint8_t group[16], uint32_t netdev_index, bool join) {
  if (is_ipv4(group)) {
    ip_mreqn request = {};
    memcpy(&request.imr_multiaddr, group + 12, 4);
    request.imr_ifindex = static_cast<int>(netdev_index);
    return set(socket, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, request);
  }
  ipv6_mreq request = {};
  memcpy(&request.ipv6mr_multiaddr, group, 16);
  request.ipv6mr_interface = netdev_index;
  return set(socket, IPPROTO_IPV6, join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP, request);
}

// True if the socket has as many memberships as it may have.
bool is_full(int error) {
  return error == ENOBUFS || error == ENOMEM;
}

void take_groups_of_others(int receiver, bool dual_stack, bool wanted) {
  const int on = wanted ? 1 : 0;
  set(receiver, IPPROTO_IP, IP_MULTICAST_ALL, on);
  if (dual_stack) set(receiver, IPPROTO_IPV6, kIpv6MulticastAll, on);
}

}  // namespace

int GroupSockets::join_another(int receiver, bool dual_stack, const uint8_t group[16], uint32_t netdev_index) {
  int error = ENOBUFS;
  for (uint32_t i = 0; i < count_ && is_full(error); i++) error = change(others_[i].get(), group, netdev_index, true);
  if (is_full(error) && count_ < kMaxSockets) {
    OwnedFd another(socket(dual_stack ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!another) return errno;
    if (namespace_of(another.get()) != namespace_of(receiver)) return ENOBUFS;
    error = change(another.get(), group, netdev_index, true);
    if (error != 0) return error;
    another.hide();
    others_[count_++] = std::move(another);
    take_groups_of_others(receiver, dual_stack, true);
  }
  if (error == 0) members_++;
  return error;
}

int GroupSockets::join(int receiver, bool dual_stack, const uint8_t group[16], uint32_t netdev_index) {
  if (!is_multicast(group)) return EINVAL;
  if (!is_ipv4(group) && !dual_stack) return EAFNOSUPPORT;
  const ErrnoGuard keep;
  int error = change(receiver, group, netdev_index, true);
  if (is_full(error)) error = join_another(receiver, dual_stack, group, netdev_index);
  return error == EADDRINUSE ? 0 : error;
}

int GroupSockets::leave(int receiver, bool dual_stack, const uint8_t group[16], uint32_t netdev_index) {
  if (!is_multicast(group)) return EINVAL;
  if (!is_ipv4(group) && !dual_stack) return EAFNOSUPPORT;
  const ErrnoGuard keep;
  int error = change(receiver, group, netdev_index, false);
  if (error != EADDRNOTAVAIL) return error;
  for (uint32_t i = 0; i < count_ && error == EADDRNOTAVAIL; i++)
    error = change(others_[i].get(), group, netdev_index, false);
  if (error != 0) return error;
  assert(members_ != 0);
  if (--members_ == 0) {
    take_groups_of_others(receiver, dual_stack, false);
    others_ = {};
    count_ = 0;
  }
  return 0;
}

}  // namespace dapple::soft
