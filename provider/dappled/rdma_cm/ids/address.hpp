// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// IP addresses as programs give them, with their GIDs.
#pragma once

#include <netinet/in.h>

#include <cstdint>

#include "roce/cm/mad.hpp"

namespace dapple::dappled::rdma_cm {

using Gid = roce::cm::Gid;

struct Address {
  uint16_t family = 0;  // AF_INET, AF_INET6, or 0 for none
  uint16_t port = 0;    // in the host's byte order
  uint32_t scope = 0;   // the netdev of a link-local address
  Gid gid{};            // IPv4 as ::ffff:a.b.c.d

  bool is_any() const;
  bool is_link_local() const;
  bool is_loopback() const;
  bool is_multicast() const;
  bool same_host(const Address& other) const { return family == other.family && gid == other.gid; }
};

// The wildcard address, and the loopback address.
Address any_address(uint16_t family);
Address loopback_address(uint16_t family);

// False if the family is neither AF_INET nor AF_INET6.
bool read_address(const sockaddr_in6& from, Address& address);
// All zero for an address without a family.
void write_address(const Address& address, sockaddr_in6& to);
// The size of the sockaddr that write_address() writes, for calls to the kernel.
socklen_t size_of(const Address& address);

}  // namespace dapple::dappled::rdma_cm
