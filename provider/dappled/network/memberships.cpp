// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/memberships.hpp"

#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

namespace dapple::dappled {
namespace {

constexpr int kIpv6MulticastAll = 29;  // IPV6_MULTICAST_ALL of <linux/in6.h>

// "INDEX\tDEVICE ..." begins an interface, "\t\t\t\tGROUP ..." is one of its groups: the address as it lies in memory,
// read as a number.
void leave_ipv4(int socket) {
  FILE* file = fopen("/proc/net/igmp", "re");
  if (file == nullptr) return;
  char line[256];
  int interface = 0;
  while (fgets(line, sizeof line, file) != nullptr) {
    unsigned group;
    if (line[0] != '\t') {
      sscanf(line, "%d", &interface);
    } else if (sscanf(line, " %8X", &group) == 1) {
      ip_mreqn request = {};
      request.imr_multiaddr.s_addr = group;
      request.imr_ifindex = interface;
      setsockopt(socket, IPPROTO_IP, IP_DROP_MEMBERSHIP, &request, sizeof request);
    }
  }
  fclose(file);
}

// "INDEX DEVICE GROUP ...", the group in 32 hexadecimal digits.
void leave_ipv6(int socket) {
  FILE* file = fopen("/proc/net/igmp6", "re");
  if (file == nullptr) return;
  char line[256];
  while (fgets(line, sizeof line, file) != nullptr) {
    unsigned interface;
    char digits[33];
    if (sscanf(line, "%u %*s %32[0-9a-fA-F]", &interface, digits) != 2 || strlen(digits) != 32) continue;
    ipv6_mreq request = {};
    request.ipv6mr_interface = interface;
    for (int i = 0; i < 16; i++) {
      unsigned byte;
      sscanf(digits + 2 * i, "%2x", &byte);
      request.ipv6mr_multiaddr.s6_addr[i] = static_cast<uint8_t>(byte);
    }
    setsockopt(socket, IPPROTO_IPV6, IPV6_DROP_MEMBERSHIP, &request, sizeof request);
  }
  fclose(file);
}

}  // namespace

void take_own_groups_only(int socket, bool dual_stack) {
  constexpr int kNo = 0;
  setsockopt(socket, IPPROTO_IP, IP_MULTICAST_ALL, &kNo, sizeof kNo);
  if (dual_stack) setsockopt(socket, IPPROTO_IPV6, kIpv6MulticastAll, &kNo, sizeof kNo);
}

void leave_multicast_groups(int socket, bool dual_stack) {
  take_own_groups_only(socket, dual_stack);
  leave_ipv4(socket);
  if (dual_stack) leave_ipv6(socket);
}

}  // namespace dapple::dappled
