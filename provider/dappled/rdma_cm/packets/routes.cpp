// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/packets/routes.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "provider/protocol/messages.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

// A socket's connect() decides on the route and the source address, and sends nothing for UDP.
int connect_to(int socket, const Address& destination) {
  Address peer = destination;
  peer.port = soft::kRocePort;
  sockaddr_in6 to;
  write_address(peer, to);
  return connect(socket, reinterpret_cast<const sockaddr*>(&to), size_of(peer)) == 0 ? 0 : errno;
}

int bind_to(int socket, const Address& source) {
  Address own = source;
  own.port = 0;
  sockaddr_in6 from;
  write_address(own, from);
  return bind(socket, reinterpret_cast<const sockaddr*>(&from), size_of(own)) == 0 ? 0 : errno;
}

}  // namespace

int find_route(const Address& destination, Address& source) {
  const soft::OwnedFd socket(::socket(destination.family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return errno;
  if (!source.is_any()) {
    if (const int error = bind_to(socket.get(), source); error != 0) return error;
  }
  // A multicast group needs no route: the source address or the scope selects the netdev, and that is sufficient.
  if (const int error = connect_to(socket.get(), destination); error != 0) return error;
  sockaddr_in6 own = {};
  socklen_t size = sizeof own;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return errno;
  Address found;
  if (!read_address(own, found)) return EADDRNOTAVAIL;
  found.port = source.port;
  source = found;
  return 0;
}

int check_own_address(const Address& address) {
  const soft::OwnedFd socket(::socket(address.family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket ? bind_to(socket.get(), address) : errno;
}

void ephemeral_ports(uint16_t& first, uint16_t& last) {
  first = 32768;
  last = 60999;
  FILE* file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
  if (file == nullptr) return;
  unsigned low = 0, high = 0;
  const bool good = fscanf(file, "%u %u", &low, &high) == 2 && low >= 1 && low <= high && high <= UINT16_MAX;
  fclose(file);
  if (!good) return;
  first = static_cast<uint16_t>(low);
  last = static_cast<uint16_t>(high);
}

bool ipv6_binds_alone() {
  const soft::OwnedFd file(open("/proc/sys/net/ipv6/bindv6only", O_RDONLY | O_CLOEXEC));
  char digit = '0';
  return file && read(file.get(), &digit, sizeof digit) == sizeof digit && digit != '0';
}

}  // namespace dapple::dappled::rdma_cm
