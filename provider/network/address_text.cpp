// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/network/address_text.hpp"

#include <arpa/inet.h>
#include <stdio.h>

#include "provider/network/gid.hpp"

namespace dapple::soft {

AddressText::AddressText(const uint8_t gid[16], uint16_t port) {
  const bool ipv4 = is_ipv4(gid);
  char host[INET6_ADDRSTRLEN];
  inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + sizeof kMappedPrefix : gid, host, sizeof host);
  if (port == 0) {
    snprintf(text_, sizeof text_, "%s", host);
  } else {
    snprintf(text_, sizeof text_, ipv4 ? "%s:%u" : "[%s]:%u", host, port);
  }
}

}  // namespace dapple::soft
