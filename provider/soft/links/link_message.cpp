// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/links/link_message.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <span>

namespace dapple::soft {
namespace {

constexpr size_t kBytesAtOnce = 256;  // more of them wait for the next call

// `size`: the number of bytes that came, or -errno.
LinkEnd end_in(const uint8_t (&bytes)[kBytesAtOnce], ssize_t size) {
  // EMFILE: there was no room for the descriptors.
  if (size <= 0) return {size != -EAGAIN && size != -EINTR && size != -EMFILE, Transport::kPeerGone};
  const auto last = static_cast<Transport>(bytes[size - 1]);
  // Shared memory is no reason to end, and neither is a number that no peer of ours sends.
  const bool is_reason = last > Transport::kSharedMemory && last < Transport::kCount;
  return {last != Transport::kNone, is_reason ? last : Transport::kPeerGone};
}

LinkEnd look(const OwnedFd& socket, int flags) {
  uint8_t bytes[kBytesAtOnce];
  const ssize_t size = recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT | flags);
  return end_in(bytes, size < 0 ? -errno : size);
}

}  // namespace

LinkEnd look_for_end(const OwnedFd& socket, Descriptors& files) {
  uint8_t bytes[kBytesAtOnce];
  return end_in(bytes, receive_message(socket.get(), std::as_writable_bytes(std::span(bytes)), files, MSG_DONTWAIT));
}

LinkEnd look_for_end(const OwnedFd& socket) {
  return look(socket, 0);
}

LinkEnd peek_for_end(const OwnedFd& socket) {
  return look(socket, MSG_PEEK);
}

// EAGAIN: bytes wait there already. An end is seen when the socket is looked at.
void wake(const OwnedFd& socket) {
  const char byte = 0;
  send(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void say_why(const OwnedFd& socket, Transport why) {
  const auto byte = static_cast<uint8_t>(why);
  send(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

}  // namespace dapple::soft
