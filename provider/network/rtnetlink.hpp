// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One question to the kernel about a route or a neighbour, over a socket of NETLINK_ROUTE. Needs no privilege. The
// kernel answers within the call that asks.
#pragma once

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// Empty on failure, with errno.
inline OwnedFd route_socket() {
  return OwnedFd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

struct RouteQuestion {
  nlmsghdr header = {};
  union {
    rtmsg route;
    ndmsg neighbour = {};
  };
  alignas(4) uint8_t attributes[64] = {};

  // `body`: the member of the union that the type needs.
  template <class Body>
  void begin(uint16_t type, const Body&) {
    header.nlmsg_type = type;
    header.nlmsg_flags = NLM_F_REQUEST;
    header.nlmsg_len = NLMSG_LENGTH(sizeof(Body));
  }
  void add(uint16_t type, const void* value, size_t size);
};

// RTM_GETROUTE from one address to another, both of `family`. `source` may be null. netdev_index: 0, or the scope of a
// link-local destination.
RouteQuestion route_question(int family, const void* source, const void* destination, uint32_t netdev_index);

struct RouteAnswer {
  alignas(nlmsghdr) uint8_t room[4096];
  nlmsghdr* message = nullptr;
};

// `type`: of the answer. 0, or an errno; it may be the kernel's answer.
int ask_kernel(int socket, const RouteQuestion& question, uint16_t type, RouteAnswer& answer);

}  // namespace dapple::soft
