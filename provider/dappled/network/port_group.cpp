// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/port_group.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <span>

#include "provider/dappled/network/memberships.hpp"

namespace dapple::dappled {
namespace {

// More than 10. If the early lookup finds only one socket in a multicast group, Linux 6.6 and later treats the packet
// as unicast: the BPF program chooses another socket, which then gets the packet. Linux skips the early lookup if there
// are more than 10 sockets.
constexpr uint32_t kSlotsAtOnce = 12;
static_assert(kSlotsAtOnce <= soft::kMaxMessageDescriptors);
// From <linux/udp.h>, which conflicts with <netinet/udp.h>.
constexpr int kUdpNoCheck6Rx = 102;
constexpr int kUdpGro = 104;

void set(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof value);
}

int family_of(int socket) {
  int family = AF_UNSPEC;
  socklen_t size = sizeof family;
  getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size);
  return family;
}

// Is it a UDP socket on this port?
bool is_slot_socket(int socket, uint16_t port) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_UDP) return false;
  sockaddr_in6 address = {};
  size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  // The port is at the same place for both families.
  return (address.sin6_family == AF_INET6 || address.sin6_family == AF_INET) && ntohs(address.sin6_port) == port;
}

int drop_everything(int socket) {
  sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &drop};
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 ? 0 : errno;
}

}  // namespace

soft::OwnedFd PortGroup::bound_socket(bool shared, int& error) const {
  const int family = dual_stack_ ? AF_INET6 : AF_INET;
  soft::OwnedFd socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  error = errno;
  if (!socket) return socket;
  if (shared) set(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  take_own_groups_only(socket.get(), dual_stack_);
  if (dual_stack_) set(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // The kernel's rxe sends no UDP checksum with IPv6 either; the ICRC protects the packet.
  set(socket.get(), IPPROTO_UDP, kUdpNoCheck6Rx, 1);
  // Set on all sockets: the kernel merges packets before it steers them, and asks any socket of the group whether it
  // may.
  set(socket.get(), IPPROTO_UDP, kUdpGro, 1);
  drop_everything(socket.get());
  sockaddr_storage address = {};
  socklen_t size;
  if (dual_stack_) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port_);
    size = sizeof in6;
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(address);
    in.sin_family = AF_INET;
    in.sin_port = htons(port_);
    size = sizeof in;
  }
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    error = errno;
    return {};
  }
  error = 0;
  return socket;
}

void PortGroup::assert_consistent() const {
  assert(size_ <= soft::kMaxSlots);
  // The bundle keeps the indexes of all sockets when this dappled dies.
  assert(exists() == static_cast<bool>(bundle_));
  assert(!exists() || (sockets_[0] && sockets_[size_ - 1]));
  assert(size_ == soft::kMaxSlots || !sockets_[size_]);
}

bool PortGroup::create(soft::Problem& problem) {
  assert(!exists());
  int error = 0;
  dual_stack_ = true;
  // This bind fails while sockets of a dying group remain, because it lacks SO_REUSEPORT. Beside those sockets, the
  // indexes of the new ones would be wrong.
  soft::OwnedFd first = bound_socket(false, error);
  if (!first && (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)) {
    dual_stack_ = false;
    first = bound_socket(false, error);
  }
  if (!first) {
    problem.set(error, error == EADDRINUSE ? "UDP port %u is in use" : "cannot make a socket on UDP port %u: %s", port_,
                strerror(error));
    return false;
  }
  set(first.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  const int fd = first.get();
  if (error = bundle_.create(); error == 0) error = bundle_.add(0, std::span(&fd, 1));
  if (error != 0) {
    close();
    problem.set(error, "dappled cannot keep its sockets: %s", strerror(error));
    return false;
  }
  sockets_[0] = std::move(first);
  size_ = 1;
  if (!grow(problem)) {
    close();
    return false;
  }
  assert(size_ >= 2);
  return true;
}

bool PortGroup::take_over(soft::OwnedFd writer, soft::OwnedFd queue, soft::Problem& problem) {
  assert(!exists());
  Bundle bundle;
  bundle.adopt(std::move(writer), std::move(queue));
  soft::OwnedFd sockets[soft::kMaxSlots];
  const int count = bundle.look(sockets, soft::kMaxSlots);
  bool good = count >= 2;
  for (int i = 0; good && i < count; i++) good = is_slot_socket(sockets[i].get(), port_);
  if (!good) {
    const int error = count < 0 ? -count : EINVAL;
    problem.set(error, "dappled cannot take over the port's sockets: %s", strerror(error));
    return false;
  }
  dual_stack_ = family_of(sockets[0].get()) == AF_INET6;
  size_ = static_cast<uint32_t>(count);
  for (uint32_t i = 0; i < size_; i++) sockets_[i] = std::move(sockets[i]);
  bundle_ = std::move(bundle);
  assert_consistent();
  return steer(problem);
}

bool PortGroup::grow(soft::Problem& problem) {
  assert(exists());
  // The first growth makes the total a multiple of kSlotsAtOnce.
  const uint32_t wanted = std::min(size_ + kSlotsAtOnce - size_ % kSlotsAtOnce, soft::kMaxSlots);
  int error = size_ == soft::kMaxSlots ? ENOSPC : 0;
  soft::OwnedFd sockets[kSlotsAtOnce];
  int fds[kSlotsAtOnce];
  uint32_t count = 0;
  for (; error == 0 && size_ + count < wanted; count++) {
    sockets[count] = bound_socket(true, error);
    if (error != 0) break;
    fds[count] = sockets[count].get();
  }
  // A few are better than none.
  if (count > 0) error = bundle_.add(size_, std::span(fds, count));
  if (count > 0 && error == 0) {
    for (uint32_t i = 0; i < count; i++) sockets_[size_ + i] = std::move(sockets[i]);
    size_ += count;
    assert_consistent();
    return steer(problem);
  }
  // The sockets that are closed now are the last ones of the group, so no other index changes.
  if (error == ENOSPC) {
    problem.set(error, "all %u slots of UDP port %u are in use; end a program, or use another network namespace",
                soft::kMaxSlots - 1, port_);
  } else {
    problem.set(error, "dappled cannot add a socket on UDP port %u: %s", port_, strerror(error));
  }
  return false;
}

bool PortGroup::steer(soft::Problem& problem) {
  // slot_of() the destination QPN, which is in the bytes 5 to 7 of the UDP payload. For an index beyond the group the
  // kernel would choose any socket, so the program returns slot 0, which is harmless.
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 5),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, soft::kLargeSlots, 0, 5),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, soft::kSmallSlotBits - 8),
      BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, soft::kLargeSlots),
      BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, size_, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  const sock_fprog program = {sizeof code / sizeof code[0], code};
  if (setsockopt(sockets_[0].get(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) == 0) return true;
  problem.set(errno, "cannot attach the SO_REUSEPORT filter for UDP port %u: %s", port_, strerror(errno));
  return false;
}

void PortGroup::idle(uint32_t slot) {
  assert(slot < size_);
  const int socket = sockets_[slot].get();
  drop_everything(socket);
  leave_multicast_groups(socket, dual_stack_);
  // Drops the packets that came before. No new packets come, so this ends; the bound is for a filter that could not be
  // attached.
  char byte;
  for (int i = 0; i < 1 << 20; i++) {
    if (recv(socket, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno == EAGAIN) break;
  }
}

int PortGroup::open(uint32_t slot) {
  const int unused = 0;
  if (setsockopt(sockets_[slot].get(), SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) == 0) return 0;
  return errno == ENOENT ? 0 : errno;
}

void PortGroup::close() {
  for (soft::OwnedFd& socket : sockets_) socket.reset();
  size_ = 0;
  bundle_.close();
}

}  // namespace dapple::dappled
