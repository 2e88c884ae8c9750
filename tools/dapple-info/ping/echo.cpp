// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/ping/echo.hpp"

#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "provider/common/clock.hpp"

namespace dapple::info {
namespace {

constexpr int kDontFragment = 3;  // IP_PMTUDISC_PROBE, IPV6_PMTUDISC_PROBE
constexpr size_t kIpv4Header = 20, kIpv6Header = 40, kEchoHeader = 8;
constexpr size_t kMax = 65536;

uint16_t checksum(const std::vector<uint8_t>& bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i++) sum += i % 2 == 0 ? static_cast<uint32_t>(bytes[i]) << 8 : bytes[i];
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

}  // namespace

bool Echo::open(const Address& local, const Address& peer) {
  ipv6_ = peer.any.sa_family == AF_INET6;
  peer_ = with_port(peer, 0);
  const int protocol = ipv6_ ? static_cast<int>(IPPROTO_ICMPV6) : static_cast<int>(IPPROTO_ICMP);
  for (const int type : {SOCK_DGRAM, SOCK_RAW}) {
    raw_ = type == SOCK_RAW;
    fd_.reset(socket(peer.any.sa_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
    if (fd_) break;
  }
  if (!fd_) return false;
  const int value = kDontFragment;
  setsockopt(fd_.get(), ipv6_ ? IPPROTO_IPV6 : IPPROTO_IP, ipv6_ ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &value,
             sizeof value);
  const Address from = with_port(local, 0);
  // If this fails, the kernel chooses the address.
  static_cast<void>(bind(fd_.get(), &from.any, size_of_address(from)));
  id_ = static_cast<uint16_t>(getpid());
  return true;
}

bool Echo::comes_back(unsigned int datagram_size, int milliseconds) {
  const size_t headers = (ipv6_ ? kIpv6Header : kIpv4Header) + kEchoHeader;
  std::vector<uint8_t> bytes(kEchoHeader + (datagram_size > headers ? datagram_size - headers : 0));
  for (int tries = 0; tries < 2; tries++) {
    sequence_++;
    bytes[0] = ipv6_ ? ICMP6_ECHO_REQUEST : ICMP_ECHO;
    bytes[2] = bytes[3] = 0;
    bytes[4] = static_cast<uint8_t>(id_ >> 8);
    bytes[5] = static_cast<uint8_t>(id_);
    bytes[6] = static_cast<uint8_t>(sequence_ >> 8);
    bytes[7] = static_cast<uint8_t>(sequence_);
    if (!ipv6_) {
      const uint16_t sum = checksum(bytes);
      bytes[2] = static_cast<uint8_t>(sum >> 8);
      bytes[3] = static_cast<uint8_t>(sum);
    }
    if (sendto(fd_.get(), bytes.data(), bytes.size(), 0, &peer_.any, size_of_address(peer_)) < 0) continue;
    if (hear(sequence_, milliseconds)) return true;
  }
  return false;
}

bool Echo::hear(uint16_t sequence, int milliseconds) {
  static uint8_t bytes[kMax];
  const int64_t end = static_cast<int64_t>(now_ms()) + milliseconds;
  for (int64_t left = milliseconds; left >= 0; left = end - static_cast<int64_t>(now_ms())) {
    pollfd waiting{fd_.get(), POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left)) <= 0) return false;
    Address from{};
    socklen_t size = sizeof from;
    const ssize_t got = recvfrom(fd_.get(), bytes, sizeof bytes, 0, &from.any, &size);
    if (got < 0) continue;
    // An IPv4 raw socket delivers the IP header, and the replies of all processes.
    const size_t begin = raw_ && !ipv6_ ? static_cast<size_t>(bytes[0] & 15) * 4 : 0;
    if (static_cast<size_t>(got) < begin + kEchoHeader) continue;
    const uint8_t* reply = bytes + begin;
    const bool mine = !raw_ || (reply[4] == id_ >> 8 && reply[5] == (id_ & 0xFF));
    const bool right = reply[0] == (ipv6_ ? ICMP6_ECHO_REPLY : ICMP_ECHOREPLY) && reply[6] == sequence >> 8 &&
                       reply[7] == (sequence & 0xFF);
    if (mine && right && gid_of(from) == gid_of(peer_)) return true;
  }
  return false;
}

}  // namespace dapple::info
