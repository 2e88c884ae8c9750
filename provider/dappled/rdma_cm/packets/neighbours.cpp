// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/packets/neighbours.hpp"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "provider/network/gid.hpp"
#include "provider/network/rtnetlink.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

using soft::RouteAnswer;
using soft::RouteQuestion;

constexpr uint16_t kDiscardPort = 9;
// The kernel's NUD_VALID.
constexpr uint16_t kKnownStates = NUD_PERMANENT | NUD_NOARP | NUD_REACHABLE | NUD_PROBE | NUD_STALE | NUD_DELAY;

const uint8_t* bytes_of(const Address& address) {
  return address.gid.data() + (address.family == AF_INET ? 12 : 0);
}

size_t length_of(uint16_t family) {
  return family == AF_INET ? 4 : 16;
}

bool read_bytes(uint16_t family, const void* bytes, size_t size, Address& address) {
  if ((family != AF_INET && family != AF_INET6) || size != length_of(family)) return false;
  address = {};
  address.family = family;
  if (family == AF_INET) {
    soft::ipv4_gid(static_cast<const uint8_t*>(bytes), address.gid.data());
  } else {
    memcpy(address.gid.data(), bytes, size);
  }
  return true;
}

// RTA_VIA: a gateway of another family.
bool read_via(const void* bytes, size_t size, Address& address) {
  rtvia via;
  if (size < sizeof via) return false;
  memcpy(&via, bytes, sizeof via);
  return read_bytes(via.rtvia_family, static_cast<const uint8_t*>(bytes) + sizeof via, size - sizeof via, address);
}

// Some sandboxes refuse the question with another error.
bool means_unreachable(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES;
}

// The neighbour on the way; netdev 0 if none is needed. 0 or an errno.
int find_neighbour_on_path(int socket, const Address& source, const Address& destination, Neighbour& neighbour) {
  const RouteQuestion question =
      soft::route_question(destination.family, source.is_any() ? nullptr : bytes_of(source), bytes_of(destination),
                           destination.is_link_local() ? destination.scope : 0);
  RouteAnswer answer;
  if (const int error = ask_kernel(socket, question, RTM_NEWROUTE, answer); error != 0) return error;
  const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(answer.message));
  neighbour = {};
  if (route->rtm_type == RTN_LOCAL || route->rtm_type == RTN_BROADCAST || route->rtm_type == RTN_ANYCAST ||
      route->rtm_type == RTN_MULTICAST) {
    return 0;
  }
  if (route->rtm_type != RTN_UNICAST) return EHOSTUNREACH;
  neighbour.address = destination;
  neighbour.address.port = 0;
  int left = static_cast<int>(RTM_PAYLOAD(answer.message));
  for (const rtattr* entry = RTM_RTA(route); RTA_OK(entry, left); entry = RTA_NEXT(entry, left)) {
    const size_t size = RTA_PAYLOAD(entry);
    const void* value = RTA_DATA(entry);
    if (entry->rta_type == RTA_OIF && size >= sizeof neighbour.netdev_index) {
      memcpy(&neighbour.netdev_index, value, sizeof neighbour.netdev_index);
    } else if (entry->rta_type == RTA_GATEWAY) {
      read_bytes(destination.family, value, size, neighbour.address);
    } else if (entry->rta_type == RTA_VIA) {
      read_via(value, size, neighbour.address);
    }
  }
  neighbour.address.scope = neighbour.address.is_link_local() ? neighbour.netdev_index : 0;
  return 0;
}

// True if hosts on the device's link have link-layer addresses that the kernel asks for, by the rules of its rdma_cm
// and ARP.
bool asks_neighbours(int socket, uint32_t netdev_index) {
  ifreq request = {};
  request.ifr_ifindex = static_cast<int>(netdev_index);
  if (ioctl(socket, SIOCGIFNAME, &request) != 0 || ioctl(socket, SIOCGIFFLAGS, &request) != 0) return false;
  return (request.ifr_flags & (IFF_LOOPBACK | IFF_POINTOPOINT | IFF_NOARP)) == 0;
}

}  // namespace

int look_for_neighbour(const Address& source, const Address& destination, Neighbour& neighbour, bool& asked) {
  asked = false;
  const soft::OwnedFd socket = soft::route_socket();
  if (!socket) return 0;
  const int no_path = find_neighbour_on_path(socket.get(), source, destination, neighbour);
  if (no_path != 0) return means_unreachable(no_path) ? no_path : 0;
  if (neighbour.netdev_index == 0 || !asks_neighbours(socket.get(), neighbour.netdev_index)) return 0;
  RouteQuestion question;
  question.begin(RTM_GETNEIGH, question.neighbour);
  question.neighbour.ndm_family = static_cast<uint8_t>(neighbour.address.family);
  question.neighbour.ndm_ifindex = static_cast<int>(neighbour.netdev_index);
  question.add(NDA_DST, bytes_of(neighbour.address), length_of(neighbour.address.family));
  RouteAnswer answer;
  const int error = ask_kernel(socket.get(), question, RTM_NEWNEIGH, answer);
  if (error == ENOENT) return ENODATA;
  // Linux before 5.0 lists only all neighbours at once.
  if (error != 0) return 0;
  const auto* found = static_cast<const ndmsg*>(NLMSG_DATA(answer.message));
  asked = (found->ndm_state & NUD_INCOMPLETE) != 0;
  return (found->ndm_state & kKnownStates) != 0 ? 0 : ENODATA;
}

int ask_neighbour(const Address& source, const Neighbour& neighbour) {
  const bool ipv4 = neighbour.address.family == AF_INET;
  const soft::OwnedFd socket(::socket(neighbour.address.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return ENODATA;
  sockaddr_in6 target;
  // If the bind succeeds, the kernel asks the neighbour from this address.
  if (source.family == neighbour.address.family) {
    Address own = source;
    own.port = 0;
    write_address(own, target);
    (void)bind(socket.get(), reinterpret_cast<const sockaddr*>(&target), size_of(own));
  }
  // The datagram goes no further than to the neighbour.
  const int hops = 1;
  const uint32_t netdev = htonl(neighbour.netdev_index);
  setsockopt(socket.get(), ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TTL : IPV6_UNICAST_HOPS, &hops, sizeof hops);
  setsockopt(socket.get(), ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_UNICAST_IF : IPV6_UNICAST_IF, &netdev,
             sizeof netdev);
  Address to = neighbour.address;
  to.port = kDiscardPort;
  write_address(to, target);
  if (sendto(socket.get(), nullptr, 0, 0, reinterpret_cast<const sockaddr*>(&target), size_of(to)) >= 0) return ENODATA;
  return errno == EPERM || errno == EACCES ? 0 : ENODATA;
}

int NeighbourWatch::open() {
  socket_.reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket_) return errno;
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_NEIGH;
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return 0;
  const int error = errno;
  socket_.reset();
  return error;
}

NeighbourWatch::News NeighbourWatch::next(Neighbour& neighbour) {
  RouteAnswer news;
  const ssize_t size = recv(socket_.get(), news.room, sizeof news.room, 0);
  if (size < 0) return errno == ENOBUFS ? News::kLost : News::kNone;
  auto* message = reinterpret_cast<nlmsghdr*>(news.room);
  if (!NLMSG_OK(message, static_cast<size_t>(size)) || message->nlmsg_type != RTM_NEWNEIGH) return News::kOther;
  const auto* found = static_cast<const ndmsg*>(NLMSG_DATA(message));
  if ((found->ndm_state & kKnownStates) == 0) return News::kOther;
  neighbour = {};
  neighbour.netdev_index = static_cast<uint32_t>(found->ndm_ifindex);
  const auto* entry =
      reinterpret_cast<const rtattr*>(reinterpret_cast<const uint8_t*>(found) + NLMSG_ALIGN(sizeof *found));
  int left = static_cast<int>(NLMSG_PAYLOAD(message, sizeof *found));
  for (; RTA_OK(entry, left); entry = RTA_NEXT(entry, left)) {
    if (entry->rta_type != NDA_DST) continue;
    if (read_bytes(found->ndm_family, RTA_DATA(entry), RTA_PAYLOAD(entry), neighbour.address)) return News::kAnswer;
  }
  return News::kOther;
}

}  // namespace dapple::dappled::rdma_cm
