// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/protocol/unix_message.hpp"

#include <errno.h>
#include <string.h>

namespace dapple::soft {
namespace {

// The kernel does less for this than for sendmsg().
int send_plain(int socket, std::span<const std::byte> message, int flags) {
  for (;;) {
    if (send(socket, message.data(), message.size(), flags | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

}  // namespace

int send_message(int socket, std::span<const std::byte> message, std::span<const int> descriptors, int flags) {
  if (descriptors.empty()) return send_plain(socket, message, flags);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageDescriptors)] = {};
  iovec part = {const_cast<std::byte*>(message.data()), message.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptors.size() > kMaxMessageDescriptors) return EINVAL;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  for (;;) {
    if (sendmsg(socket, &header, flags | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return errno;
  }
}

ssize_t receive_message(int socket, std::span<std::byte> room) {
  ssize_t size;
  do {
    size = recv(socket, room.data(), room.size(), MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return -errno;
  return static_cast<size_t>(size) > room.size() ? -EMSGSIZE : size;
}

ssize_t receive_message(int socket, std::span<std::byte> room, Descriptors& descriptors, int flags) {
  // The kernel closes descriptors that find no room here.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxMessageDescriptors)];
  iovec part = {room.data(), room.size()};
  msghdr header;
  ssize_t size;
  do {
    header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    size = recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return -errno;
  descriptors.count = 0;
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&header); part_of != nullptr; part_of = CMSG_NXTHDR(&header, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      memcpy(&fd, CMSG_DATA(part_of) + i * sizeof fd, sizeof fd);
      OwnedFd owned(fd);
      if (descriptors.count < kMaxMessageDescriptors) descriptors.fds[descriptors.count++] = std::move(owned);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    // A truncated control part means no room in the table of descriptors, or more descriptors than a peer may send.
    const bool too_large = (header.msg_flags & MSG_TRUNC) != 0;
    for (OwnedFd& fd : descriptors.fds) fd.reset();
    descriptors.count = 0;
    return too_large ? -EMSGSIZE : -EMFILE;
  }
  return size;
}

socklen_t abstract_address(const char* name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  size_t size = strlen(name);
  if (size > sizeof address.sun_path - 1) size = sizeof address.sun_path - 1;
  memcpy(address.sun_path + 1, name, size);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
}

}  // namespace dapple::soft
