// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/ids/address.hpp"

#include <string.h>

#include "provider/network/gid.hpp"

namespace dapple::dappled::rdma_cm {

bool Address::is_any() const {
  return gid == any_address(family).gid;
}

bool Address::is_link_local() const {
  return family == AF_INET6 && soft::is_link_local(gid.data());
}

bool Address::is_loopback() const {
  return soft::is_loopback(gid.data());
}

bool Address::is_multicast() const {
  return soft::is_multicast(gid.data());
}

Address any_address(uint16_t family) {
  Address address;
  address.family = family;
  constexpr uint8_t kAny[4] = {};
  if (family == AF_INET) soft::ipv4_gid(kAny, address.gid.data());
  return address;
}

Address loopback_address(uint16_t family) {
  Address address = any_address(family);
  address.gid[15] = 1;
  if (family == AF_INET) address.gid[12] = 127;
  return address;
}

bool read_address(const sockaddr_in6& from, Address& address) {
  address = {};
  address.family = from.sin6_family;
  // The port lies at the same place for both families.
  address.port = ntohs(from.sin6_port);
  if (from.sin6_family == AF_INET) {
    sockaddr_in in;
    memcpy(&in, &from, sizeof in);
    soft::ipv4_gid(&in.sin_addr, address.gid.data());
    return true;
  }
  memcpy(address.gid.data(), &from.sin6_addr, address.gid.size());
  address.scope = from.sin6_scope_id;
  return from.sin6_family == AF_INET6;
}

void write_address(const Address& address, sockaddr_in6& to) {
  to = {};
  to.sin6_family = address.family;
  to.sin6_port = htons(address.port);
  if (address.family == AF_INET) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = to.sin6_port;
    memcpy(&in.sin_addr, address.gid.data() + 12, sizeof in.sin_addr);
    memcpy(&to, &in, sizeof in);
  } else if (address.family == AF_INET6) {
    memcpy(&to.sin6_addr, address.gid.data(), address.gid.size());
    to.sin6_scope_id = address.scope;
  }
}

socklen_t size_of(const Address& address) {
  return address.family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

}  // namespace dapple::dappled::rdma_cm
