// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/connection/connect_log.hpp"

#include <arpa/inet.h>

#include "udapl/core/connection/service_point.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/log.hpp"

namespace dapple::udapl {

void log_failed_connect(const Ia& ia, const sockaddr* remote, unsigned long long qualifier, const char* what,
                        int status) {
  if (!log_wants(kLogConnections)) return;
  char address[INET6_ADDRSTRLEN] = "?";
  const void* bytes = remote->sa_family == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(remote)->sin6_addr)
                          : &reinterpret_cast<const sockaddr_in*>(remote)->sin_addr;
  ::inet_ntop(remote->sa_family, bytes, address, sizeof address);
  log(kLogConnections, "IA %s: connecting to %s port %u (qualifier 0x%llx) failed: %s, status %d", ia.name().c_str(),
      address, unsigned{to_port(qualifier)}, qualifier, what, status);
}

}  // namespace dapple::udapl
