// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/asker.hpp"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "provider/protocol/messages.hpp"

namespace dapple::info {
namespace {

constexpr int kUdpNoCheck6Rx = 102;  // UDP_NO_CHECK6_RX of <linux/udp.h>
constexpr int kDontFragment = 3;     // IP_PMTUDISC_PROBE, IPV6_PMTUDISC_PROBE: ignores the known MTU of the path
// IBTA A17.9.2: source ports of RoCEv2.
constexpr uint32_t kFirstPort = 49152, kPorts = 16384;

bool set(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

Trouble::Kind kind_of(const sock_extended_err& error) {
  const bool v4 = error.ee_origin == SO_EE_ORIGIN_ICMP;
  const bool v6 = error.ee_origin == SO_EE_ORIGIN_ICMP6;
  if (error.ee_errno == EMSGSIZE) return Trouble::Kind::kTooLarge;
  if (v4 && error.ee_type == ICMP_DEST_UNREACH) {
    if (error.ee_code == ICMP_PORT_UNREACH) return Trouble::Kind::kPortClosed;
    const bool filtered =
        error.ee_code == ICMP_NET_ANO || error.ee_code == ICMP_HOST_ANO || error.ee_code == ICMP_PKT_FILTERED;
    if (filtered) return Trouble::Kind::kProhibited;
  }
  if (v6 && error.ee_type == ICMP6_DST_UNREACH) {
    if (error.ee_code == ICMP6_DST_UNREACH_NOPORT) return Trouble::Kind::kPortClosed;
    // Codes 5 and 6: a policy, and a route that rejects (RFC 4443 3.1).
    const bool filtered = error.ee_code == ICMP6_DST_UNREACH_ADMIN || error.ee_code == 5 || error.ee_code == 6;
    if (filtered) return Trouble::Kind::kProhibited;
  }
  return Trouble::Kind::kUnreachable;
}

}  // namespace

int Asker::open(const Address& local, const Address& peer) {
  peer_ = with_port(peer, soft::kRocePort);
  fd_.reset(socket(local.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return errno;
  const bool ipv6 = local.any.sa_family == AF_INET6;
  const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
  // A socket that is not connected sends identification 0, and the ICRC covers that field.
  if (!set(fd_.get(), level, ipv6 ? IPV6_RECVERR : IP_RECVERR, 1) ||
      !set(fd_.get(), level, ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, kDontFragment)) {
    return errno;
  }
  for (uint32_t tries = 0; tries < kPorts; tries++) {
    port_ = static_cast<uint16_t>(kFirstPort + (static_cast<uint32_t>(getpid()) + tries) % kPorts);
    const Address from = with_port(local, port_);
    if (bind(fd_.get(), &from.any, size_of_address(from)) == 0) return 0;
    if (errno != EADDRINUSE) return errno;
  }
  return EADDRINUSE;
}

int Asker::send(std::span<const std::byte> packet) {
  // The first attempt may report the error of an earlier packet.
  for (int tries = 0; tries < 2; tries++) {
    if (sendto(fd_.get(), packet.data(), packet.size(), 0, &peer_.any, size_of_address(peer_)) >= 0) return 0;
  }
  return errno;
}

std::optional<Trouble> Asker::trouble() {
  char bytes[64];
  alignas(cmsghdr) char control[512];
  iovec part{bytes, sizeof bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  if (recvmsg(fd_.get(), &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return {};
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    const bool v4 = at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_RECVERR;
    const bool v6 = at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    struct {
      sock_extended_err error;
      Address offender;
    } said{};
    std::memcpy(&said, CMSG_DATA(at), std::min(sizeof said, at->cmsg_len - CMSG_LEN(0)));
    Trouble trouble;
    trouble.kind = kind_of(said.error);
    if (trouble.kind == Trouble::Kind::kTooLarge) trouble.mtu = said.error.ee_info;
    const int family = said.offender.any.sa_family;
    const bool remote = said.error.ee_origin != SO_EE_ORIGIN_LOCAL && (family == AF_INET || family == AF_INET6);
    if (remote) trouble.teller = text_of(said.offender);
    return trouble;
  }
  return {};
}

std::optional<Trouble> Asker::trouble_within(int milliseconds) {
  pollfd waiting{fd_.get(), 0, 0};
  return poll(&waiting, 1, milliseconds) > 0 ? trouble() : std::nullopt;
}

soft::OwnedFd hear_at(const Address& local) {
  soft::OwnedFd fd(socket(local.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  // The kernel's rxe sends no UDP checksum with IPv6 either.
  if (local.any.sa_family == AF_INET6) set(fd.get(), IPPROTO_UDP, kUdpNoCheck6Rx, 1);
  const Address at = with_port(local, soft::kRocePort);
  if (bind(fd.get(), &at.any, size_of_address(at)) != 0) {
    const int error = errno;
    fd.reset();
    errno = error;
  }
  return fd;
}

}  // namespace dapple::info
