// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/netlink/answers.hpp"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <cassert>

#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace {

bool address_of(int fd, sockaddr_nl& address) {
  socklen_t size = sizeof address;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

}  // namespace

Answers::Answers(int receiver) : receiver_(receiver) {
  const int sender = real.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
  if (sender < 0) return;
  // The kernel gives a socket its address at bind().
  sockaddr_nl ours = {};
  ours.nl_family = AF_NETLINK;
  sockaddr_nl theirs = {};
  if (bind(sender, reinterpret_cast<const sockaddr*>(&ours), sizeof ours) != 0 || !address_of(sender, ours) ||
      (ours.nl_groups = 0, connect(receiver, reinterpret_cast<const sockaddr*>(&ours), sizeof ours)) != 0 ||
      !address_of(receiver, theirs)) {
    const int error = errno;
    real.close(sender);
    errno = error;
    return;
  }
  sender_ = sender;
  port_ = theirs.nl_pid;
}

Answers::~Answers() {
  if (sender_ >= 0) real.close(sender_);
}

void Answers::make_room(size_t size) {
  if (size_ + size > sizeof bytes_) flush();
  assert(size_ <= sizeof bytes_);
}

bool Answers::is_option_set(int option) const {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(receiver_, SOL_NETLINK, option, &value, &size) == 0 && value != 0;
}

void Answers::begin(uint16_t type, uint16_t flags, uint32_t sequence, size_t contents) {
  assert(NLMSG_HDRLEN + NLMSG_ALIGN(contents) <= sizeof bytes_);
  make_room(NLMSG_HDRLEN + NLMSG_ALIGN(contents));
  begin_ = size_;
  nlmsghdr header = {};
  header.nlmsg_type = type;
  header.nlmsg_flags = flags;
  header.nlmsg_seq = sequence;
  header.nlmsg_pid = port_;
  put_bytes(&header, sizeof header);
}

void Answers::put_bytes(const void* bytes, size_t size) {
  // begin() has made room.
  assert(size_ % NLMSG_ALIGNTO == 0 && size_ + NLMSG_ALIGN(size) <= sizeof bytes_);
  if (size == 0) return;
  memcpy(bytes_ + size_, bytes, size);
  memset(bytes_ + size_ + size, 0, NLMSG_ALIGN(size) - size);
  size_ += NLMSG_ALIGN(size);
}

void Answers::put(uint16_t attribute, const void* value, size_t size) {
  nlattr header = {};
  header.nla_len = static_cast<uint16_t>(NLA_HDRLEN + size);
  header.nla_type = attribute;
  put_bytes(&header, sizeof header);
  put_bytes(value, size);
}

void Answers::put_text(uint16_t attribute, const char* text) {
  put(attribute, text, strlen(text) + 1);
}

size_t Answers::begin_nest(uint16_t attribute) {
  const size_t nest = size_;
  put(attribute, nullptr, 0);
  return nest;
}

void Answers::end_nest(size_t nest) {
  assert(nest >= begin_ && nest + NLA_HDRLEN <= size_);
  const auto length = static_cast<uint16_t>(size_ - nest);
  memcpy(bytes_ + nest + offsetof(nlattr, nla_len), &length, sizeof length);
}

void Answers::end() {
  const auto length = static_cast<uint32_t>(size_ - begin_);
  assert(length >= NLMSG_HDRLEN && size_ <= sizeof bytes_);
  memcpy(bytes_ + begin_ + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
}

void Answers::copy(nlmsghdr* message) {
  message->nlmsg_pid = port_;
  const size_t size = NLMSG_ALIGN(message->nlmsg_len);
  make_room(size);
  if (size > sizeof bytes_) return send(message, message->nlmsg_len);
  begin_ = size_;
  put_bytes(message, message->nlmsg_len);
}

void Answers::send(const void* bytes, size_t size) {
  assert(sender_ >= 0 && size > 0);
  sockaddr_nl to = {};
  to.nl_family = AF_NETLINK;
  to.nl_pid = port_;
  const ssize_t sent =
      real.sendto(sender_, bytes, size, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  // The kernel reports this error if its own answers overrun a full buffer.
  if (sent < 0) error_ = errno == EAGAIN ? ENOBUFS : errno;
}

bool Answers::flush() {
  if (size_ > 0) send(bytes_, size_);
  size_ = 0;
  if (error_ != 0) errno = error_;
  return error_ == 0;
}

}  // namespace dapple::doors
