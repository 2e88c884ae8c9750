// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/send_sockets.hpp"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "provider/soft/doors.hpp"
#include "provider/soft/messages.hpp"
#include "provider/soft/owned_fd.hpp"
#include "provider/soft/socket_address.hpp"

namespace dapple::soft {
namespace {

constexpr uint16_t kFirstPort = 49152;
constexpr int kTries = 256;
constexpr int kBufferBytes = 4 << 20;

int bind_somewhere(int socket, SocketAddress address, uint16_t& port) {
  for (int i = 0; i < kTries; i++) {
    uint16_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<uint16_t>(i * 257);
    port = static_cast<uint16_t>(kFirstPort | (number & 0x3FFF));
    address.set_port(port);
    if (bind(socket, address.get(), address.size) == 0) return 0;
    if (errno != EADDRINUSE) return errno;
  }
  return EADDRINUSE;
}

int make(const SocketAddress& source, OwnedFd& made, uint16_t& port) {
  const bool ipv6 = source.ipv6();
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
  // Nobody reads from it.
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &drop};
  setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
  if (const int error = bind_somewhere(socket.get(), source, port); error != 0) return error;
  made = std::move(socket);
  return 0;
}

int make_shared(bool ipv6, OwnedFd& made, uint16_t& port) {
  uint8_t any[16] = {};
  if (!ipv6) memcpy(any, kMappedPrefix, sizeof kMappedPrefix);
  return make(socket_address(any, 0, 0), made, port);
}

int make_connected(const Path& path, OwnedFd& made, uint16_t& port) {
  if (const int error = make(socket_address(path.source, path.netdev_index, 0), made, port); error != 0) return error;
  const bool ipv6 = !is_ipv4(path.destination);
  const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const int hop_limit = path.hop_limit != 0 ? path.hop_limit : kDefaultHopLimit;
  const int traffic_class = path.traffic_class;
  const SocketAddress peer = socket_address(path.destination, path.netdev_index, kRocePort);
  if (setsockopt(made.get(), level, ipv6 ? IPV6_UNICAST_HOPS : IP_TTL, &hop_limit, sizeof hop_limit) != 0 ||
      setsockopt(made.get(), level, ipv6 ? IPV6_TCLASS : IP_TOS, &traffic_class, sizeof traffic_class) != 0 ||
      connect(made.get(), peer.get(), peer.size) != 0) {
    return errno;
  }
  return 0;
}

// The bytes of a path that differ most often: the ends of both addresses.
uint32_t hash_of(const Path& path, uint8_t slot) {
  uint32_t source, destination;
  memcpy(&source, path.source + 12, sizeof source);
  memcpy(&destination, path.destination + 12, sizeof destination);
  return ((source * 31 + destination) * 31 + slot) * 0x9E3779B1U >> 16;
}

}  // namespace

bool same_flow(const Path& a, const Path& b) {
  return memcmp(a.source, b.source, sizeof a.source) == 0 &&
         memcmp(a.destination, b.destination, sizeof a.destination) == 0 && a.netdev_index == b.netdev_index &&
         a.traffic_class == b.traffic_class && a.hop_limit == b.hop_limit;
}

void SendSockets::close_all() {
  for (auto& version : sockets_) {
    for (auto& entry : version) {
      if (entry != 0) close_own(static_cast<int>(entry.load() >> 32) - 1);
    }
  }
  for (const Flow& flow : flows_) {
    if (flow.socket.connected) close_own(flow.socket.fd);
  }
}

int SendSockets::get(const Path& path, uint8_t slot, SendSocket& socket) {
  return get_connected(path, slot, socket) ? 0 : get_shared(!is_ipv4(path.destination), slot, socket);
}

int SendSockets::get_shared(bool ipv6, uint8_t slot, SendSocket& socket) {
  std::atomic<uint64_t>& entry = sockets_[ipv6 ? 1 : 0][slot];
  uint64_t value = entry.load(std::memory_order_acquire);
  if (value == 0) {
    std::lock_guard lock(mutex_);
    value = entry.load(std::memory_order_acquire);
    if (value == 0) {
      OwnedFd made;
      uint16_t port = 0;
      if (const int error = make_shared(ipv6, made, port); error != 0) return error;
      made.hide();
      value = static_cast<uint64_t>(made.release() + 1) << 32 | port;
      entry.store(value, std::memory_order_release);
    }
  }
  socket = {static_cast<int>(value >> 32) - 1, static_cast<uint16_t>(value), false};
  return 0;
}

bool SendSockets::get_connected(const Path& path, uint8_t slot, SendSocket& socket) {
  if (is_multicast(path.destination)) return false;
  std::lock_guard lock(mutex_);
  Flow& flow = flows_[hash_of(path, slot) % kFlows];
  if (!flow.taken) {
    flow = {path, slot, true, {}};
    OwnedFd made;
    uint16_t port = 0;
    if (make_connected(path, made, port) == 0) {
      made.hide();
      flow.socket = {made.release(), port, true};
    }
  }
  if (!flow.socket.connected || flow.slot != slot || !same_flow(flow.path, path)) return false;
  socket = flow.socket;
  return true;
}

}  // namespace dapple::soft
