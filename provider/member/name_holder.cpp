// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/name_holder.hpp"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "provider/protocol/unix_message.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {
namespace {

// From <linux/unix_diag.h> of Linux 5.3.
constexpr uint32_t kShowUid = 0x40;
constexpr unsigned short kUid = 7;
constexpr int kMaxMessages = 1 << 16;

struct Request {
  nlmsghdr header = {};
  unix_diag_req sockets = {};
};

OwnedFd ask_for_all_sockets() {
  OwnedFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket) return socket;
  const timeval most = {1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
  Request request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.sockets.sdiag_family = AF_UNIX;
  request.sockets.udiag_states = ~0U;
  request.sockets.udiag_show = UDIAG_SHOW_NAME | kShowUid;
  if (send(socket.get(), &request, sizeof request, 0) < 0) socket.reset();
  return socket;
}

// Takes a socket's uid and inode if it has the name, which includes the NUL in front.
bool take(nlmsghdr* message, const char* name, size_t name_size, int type, NameHolder& holder, unsigned long& inode) {
  auto* socket = static_cast<unix_diag_msg*>(NLMSG_DATA(message));
  if (socket->udiag_type != type) return false;
  bool named = false;
  NameHolder owner;
  auto left = static_cast<int>(NLMSG_PAYLOAD(message, sizeof *socket));
  for (auto* entry = reinterpret_cast<rtattr*>(socket + 1); RTA_OK(entry, left); entry = RTA_NEXT(entry, left)) {
    const size_t size = RTA_PAYLOAD(entry);
    if (entry->rta_type == UNIX_DIAG_NAME) named = size == name_size && memcmp(RTA_DATA(entry), name, size) == 0;
    if (entry->rta_type == kUid && size >= sizeof(uint32_t)) {
      uint32_t uid;
      memcpy(&uid, RTA_DATA(entry), sizeof uid);
      owner.uid = uid;
      owner.knows_uid = true;
    }
  }
  if (!named) return false;
  holder = owner;
  holder.found = true;
  inode = socket->udiag_ino;
  return true;
}

bool search(int socket, const char* name, size_t name_size, int type, NameHolder& holder, unsigned long& inode) {
  alignas(nlmsghdr) char room[16384];
  for (int i = 0; i < kMaxMessages; i++) {
    const ssize_t size = recv(socket, room, sizeof room, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    auto left = static_cast<size_t>(size);
    for (auto* message = reinterpret_cast<nlmsghdr*>(room); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY) return false;  // the end, or an error
      if (take(message, name, name_size, type, holder, inode)) return true;
    }
  }
  return false;
}

// A holder that listens shows its process, also to other users.
void ask_listener(const sockaddr_un& address, socklen_t size, int type, NameHolder& holder) {
  const OwnedFd probe(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred who = {};
  socklen_t who_size = sizeof who;
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &who, &who_size) != 0) {
    return;
  }
  holder.found = holder.knows_uid = true;
  holder.uid = who.uid;
  holder.process = who.pid;
  if (who.pid != 0) name_program(who.pid, holder.program);
}

}  // namespace

NameHolder find_name_holder(const char* name, int type) {
  NameHolder holder;
  sockaddr_un address;
  const socklen_t size = abstract_address(name, address);
  unsigned long inode = 0;
  const OwnedFd socket = ask_for_all_sockets();
  if (socket && search(socket.get(), address.sun_path, strlen(name) + 1, type, holder, inode)) {
    static_cast<SocketProcess&>(holder) = find_socket_process(inode);
  }
  if (holder.process == 0) ask_listener(address, size, type, holder);
  return holder;
}

void name_holder(const NameHolder& holder, char* text, size_t size) {
  char program[40] = "", user[24] = "";
  if (holder.program[0] != '\0') snprintf(program, sizeof program, " (%s)", holder.program);
  if (holder.knows_uid) snprintf(user, sizeof user, " of user %u", holder.uid);
  if (holder.process != 0) {
    snprintf(text, size, "Process %d%s%s", holder.process, program, user);
  } else {
    snprintf(text, size, "%s program%s", holder.knows_uid ? "A" : "Another", user);
  }
}

}  // namespace dapple::soft
