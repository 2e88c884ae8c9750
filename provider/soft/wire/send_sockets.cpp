// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/send_sockets.hpp"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cassert>

#include "provider/common/host_guards.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {
namespace {

constexpr uint16_t kFirstPort = 49152;
constexpr int kTries = 256;
constexpr int kBufferBytes = 4 << 20;

int bind_somewhere(int socket, bool ipv6, uint16_t& port) {
  for (int i = 0; i < kTries; i++) {
    port = static_cast<uint16_t>(kFirstPort | (random_number(RandomUse::kSourcePorts) & 0x3FFF));
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    sockaddr_in6 in6 = {};
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    const int result = ipv6 ? bind(socket, reinterpret_cast<const sockaddr*>(&in6), sizeof in6)
                            : bind(socket, reinterpret_cast<const sockaddr*>(&in), sizeof in);
    if (result == 0) return 0;
    if (errno != EADDRINUSE) return errno;
  }
  return EADDRINUSE;
}

int set(int socket, int level, int option, int value) {
  return setsockopt(socket, level, option, &value, sizeof value) == 0 ? 0 : errno;
}

int set_class(int socket, bool ipv6, PacketClass usual) {
  const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
  int error = set(socket, level, ipv6 ? IPV6_UNICAST_HOPS : IP_TTL, usual.hop_limit);
  if (error == 0) error = set(socket, level, ipv6 ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL, usual.hop_limit);
  if (error == 0) error = set(socket, level, ipv6 ? IPV6_TCLASS : IP_TOS, usual.traffic_class);
  return error;
}

int make(bool ipv6, PacketClass usual, OwnedFd& made, uint16_t& port) {
  OwnedFd socket(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  const int one = 1;
  if (ipv6) {
    const int discover = IPV6_PMTUDISC_DO;
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    setsockopt(socket.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof discover);
  } else {
    // "Don't fragment", with identifications that a sender can know: 0, or counted up from 0 by segmentation.
    const int discover = IP_PMTUDISC_DO;
    setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
  }
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  // Nobody reads from this socket, so it drops all packets that it receives.
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &drop};
  setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  if (const int error = set_class(socket.get(), ipv6, usual); error != 0) return error;
  if (const int error = bind_somewhere(socket.get(), ipv6, port); error != 0) return error;
  made = std::move(socket);
  return 0;
}

}  // namespace

void SendSockets::close_all() {
  for (auto& slot : sockets_) {
    for (auto& entry : slot) {
      if (entry != 0) close_own(static_cast<int>(entry.load() >> 32) - 1);
    }
  }
}

int SendSockets::get(bool ipv6, uint32_t slot, PacketClass first, SendSocket& socket) {
  assert(slot < kSlots);
  std::atomic<uint64_t>& entry = sockets_[slot][ipv6 ? 1 : 0];
  uint64_t value = entry.load(std::memory_order_acquire);
  if (value == 0) {
    const CancelGuard whole;
    std::lock_guard lock(mutex_);
    value = entry.load(std::memory_order_acquire);
    if (value == 0) {
      OwnedFd made;
      uint16_t port = 0;
      if (const int error = make(ipv6, first, made, port); error != 0) return error;
      made.hide();
      value = static_cast<uint64_t>(made.release() + 1) << 32 | uint64_t{first.traffic_class} << 24 |
              uint64_t{first.hop_limit} << 16 | port;
      entry.store(value, std::memory_order_release);
    }
  }
  socket.fd = static_cast<int>(value >> 32) - 1;
  socket.port = static_cast<uint16_t>(value);
  assert(socket.fd >= 0 && socket.port >= kFirstPort);
  socket.usual = {static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24)};
  return 0;
}

}  // namespace dapple::soft
