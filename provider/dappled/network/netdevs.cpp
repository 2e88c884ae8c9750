// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/netdevs.hpp"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

namespace dapple::dappled {
namespace {

constexpr size_t kRoom = 64 * 1024;

struct Request {
  nlmsghdr header;
  union {
    ifinfomsg link;
    ifaddrmsg address;
  };
};

int ask(int socket, uint16_t type, uint32_t sequence) {
  Request request = {};
  request.header.nlmsg_len =
      type == RTM_GETLINK ? NLMSG_LENGTH(sizeof request.link) : NLMSG_LENGTH(sizeof request.address);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.header.nlmsg_seq = sequence;
  return send(socket, &request, request.header.nlmsg_len, 0) < 0 ? errno : 0;
}

Netdev* find(Netdevs& netdevs, uint32_t index) {
  for (uint32_t i = 0; i < netdevs.count; i++) {
    if (netdevs.devices[i].index == index) return &netdevs.devices[i];
  }
  return nullptr;
}

Netdev* find_or_add(Netdevs& netdevs, uint32_t index) {
  if (Netdev* known = find(netdevs, index)) return known;
  if (netdevs.count == soft::kMaxDevices) return nullptr;
  Netdev& made = netdevs.devices[netdevs.count++];
  made = {};
  made.index = index;
  return &made;
}

void take_link(nlmsghdr* message, Netdevs& netdevs) {
  const auto* link = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
  Netdev netdev;
  netdev.index = static_cast<uint32_t>(link->ifi_index);
  netdev.up = (link->ifi_flags & IFF_UP) != 0 && (link->ifi_flags & IFF_RUNNING) != 0;
  netdev.loopback = (link->ifi_flags & IFF_LOOPBACK) != 0;
  netdev.ethernet = link->ifi_type == ARPHRD_ETHER;
  int left = static_cast<int>(IFLA_PAYLOAD(message));
  for (const rtattr* entry = IFLA_RTA(link); RTA_OK(entry, left); entry = RTA_NEXT(entry, left)) {
    const size_t size = RTA_PAYLOAD(entry);
    switch (entry->rta_type) {
      case IFLA_IFNAME:
        memcpy(netdev.name, RTA_DATA(entry), size < sizeof netdev.name ? size : sizeof netdev.name - 1);
        break;
      case IFLA_MTU:
        if (size >= sizeof netdev.mtu) memcpy(&netdev.mtu, RTA_DATA(entry), sizeof netdev.mtu);
        break;
      case IFLA_ADDRESS:
        if (size == sizeof netdev.mac) memcpy(netdev.mac, RTA_DATA(entry), size);
        break;
      case IFLA_MASTER:
        netdev.enslaved = true;
        break;
      default:
        break;
    }
  }
  // A host may have hundreds of ports of bridges, which take no room here.
  const bool has_address = find(netdevs, netdev.index) != nullptr;
  if (!has_address && !netdev.can_do_without_address()) return;
  Netdev* known = find_or_add(netdevs, netdev.index);
  if (known == nullptr) return;
  netdev.address_count = known->address_count;
  memcpy(netdev.addresses, known->addresses, sizeof netdev.addresses);
  *known = netdev;
}

void take_address(nlmsghdr* message, Netdevs& netdevs) {
  const auto* address = static_cast<const ifaddrmsg*>(NLMSG_DATA(message));
  const bool ipv4 = address->ifa_family == AF_INET;
  if (!ipv4 && address->ifa_family != AF_INET6) return;
  const size_t wanted = ipv4 ? 4 : 16;
  const void* value = nullptr;
  uint32_t flags = address->ifa_flags;
  int left = static_cast<int>(IFA_PAYLOAD(message));
  for (const rtattr* entry = IFA_RTA(address); RTA_OK(entry, left); entry = RTA_NEXT(entry, left)) {
    // On a point-to-point link IFA_ADDRESS is the other end's address, and IFA_LOCAL is ours.
    if (entry->rta_type == IFA_FLAGS && RTA_PAYLOAD(entry) >= sizeof flags)
      memcpy(&flags, RTA_DATA(entry), sizeof flags);
    if (RTA_PAYLOAD(entry) != wanted) continue;
    if (entry->rta_type == IFA_LOCAL || (entry->rta_type == IFA_ADDRESS && value == nullptr)) value = RTA_DATA(entry);
  }
  // No program can bind to an IPv6 address before duplicate address detection has ended.
  const bool tentative = (flags & IFA_F_TENTATIVE) != 0 && (flags & IFA_F_OPTIMISTIC) == 0;
  if (value == nullptr || tentative || (flags & IFA_F_DADFAILED) != 0) return;
  Netdev* netdev = find_or_add(netdevs, address->ifa_index);
  if (netdev == nullptr || netdev->address_count == kMaxAddresses) return;
  uint8_t* gid = netdev->addresses[netdev->address_count++];
  if (ipv4) {
    gid[10] = gid[11] = 0xFF;
    memcpy(gid + 12, value, 4);
  } else {
    memcpy(gid, value, 16);
  }
}

// Receives the answer to ask(). EINTR: something changed meanwhile, and the answer may be wrong.
template <class Take>
int receive(int socket, uint32_t sequence, Take take) {
  alignas(nlmsghdr) static char room[kRoom];
  bool inconsistent = false;
  for (;;) {
    const ssize_t size = recv(socket, room, sizeof room, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return errno;
    size_t left = static_cast<size_t>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(room); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_seq != sequence) continue;
      inconsistent = inconsistent || (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (message->nlmsg_type == NLMSG_DONE) return inconsistent ? EINTR : 0;
      if (message->nlmsg_type == NLMSG_ERROR) {
        const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(message));
        return error->error != 0 ? -error->error : EPROTO;
      }
      take(message);
    }
  }
}

int read_once(int socket, uint32_t sequence, Netdevs& netdevs) {
  netdevs.count = 0;
  // The kernel lists IPv4 before IPv6.
  int error = ask(socket, RTM_GETADDR, sequence);
  if (error == 0) {
    error = receive(socket, sequence, [&](nlmsghdr* message) {
      if (message->nlmsg_type == RTM_NEWADDR) take_address(message, netdevs);
    });
  }
  if (error == 0) error = ask(socket, RTM_GETLINK, sequence + 1);
  if (error == 0) {
    error = receive(socket, sequence + 1, [&](nlmsghdr* message) {
      if (message->nlmsg_type == RTM_NEWLINK) take_link(message, netdevs);
    });
  }
  // A link may have gone after its addresses were listed.
  Netdev* const end = std::remove_if(netdevs.devices, netdevs.devices + netdevs.count,
                                     [](const Netdev& netdev) { return netdev.name[0] == '\0'; });
  std::sort(netdevs.devices, end, [](const Netdev& a, const Netdev& b) { return a.index < b.index; });
  netdevs.count = static_cast<uint32_t>(end - netdevs.devices);
  return error;
}

}  // namespace

int read_netdevs(Netdevs& netdevs) {
  soft::OwnedFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return errno;
  const timeval most = {1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  int error = EINTR;
  for (uint32_t i = 0; i < 5 && error == EINTR; i++) error = read_once(socket.get(), 1 + 2 * i, netdevs);
  return error == EINTR ? 0 : error;
}

int NetdevWatch::open() {
  socket_.reset(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!socket_) return errno;
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  return bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

bool NetdevWatch::changed() {
  bool any = false;
  char byte;
  // A message only shows that something changed; read_netdevs() finds out what. A lost message (ENOBUFS) counts as
  // well.
  for (int i = 0; i < 10000; i++) {
    if (recv(socket_.get(), &byte, 1, MSG_TRUNC) < 0 && errno != ENOBUFS) break;
    any = true;
  }
  return any;
}

}  // namespace dapple::dappled
