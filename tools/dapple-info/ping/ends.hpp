// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The two ends of a ping: the peer by its name, and the address and network device that lead to it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "tools/dapple-info/ping/question.hpp"

namespace dapple::info {

// An IPv4 or IPv6 address with its scope, whose port is set for each use.
union Address {
  sockaddr any;
  sockaddr_in in;
  sockaddr_in6 in6;
};

socklen_t size_of_address(const Address& address);
Address with_port(const Address& address, uint16_t port);
Gid16 gid_of(const Address& address);
std::string text_of(const Address& address);

// The resolver's error message; empty on success.
std::string resolve(const std::string& name, Address& address);

struct Route {
  int error = 0;  // an errno; then the other members are not set
  Address local{};
  std::string netdev;
  unsigned int netdev_mtu = 0;  // 0: unknown
};

Route route_to(const Address& peer);

}  // namespace dapple::info
