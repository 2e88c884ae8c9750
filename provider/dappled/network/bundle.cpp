// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/network/bundle.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <cassert>

#include "provider/protocol/messages.hpp"
#include "provider/protocol/unix_message.hpp"

namespace dapple::dappled {
namespace {

// With some sockets. The kernel limits the bytes of a queue and counts some 800 for each message, so the sockets of all
// slots have no room in messages of their own.
struct Entry {
  uint32_t magic = soft::kMagic;
  uint32_t index = 0;  // of the first one
};

// For systems with a small default.
constexpr int kQueueBytes = 1 << 20;

}  // namespace

int Bundle::create() {
  assert(!queue_);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return errno;
  writer_.reset(ends[0]);
  queue_.reset(ends[1]);
  setsockopt(writer_.get(), SOL_SOCKET, SO_SNDBUF, &kQueueBytes, sizeof kQueueBytes);
  return 0;
}

int Bundle::add(uint32_t index, std::span<const int> sockets) {
  assert(writer_ && !sockets.empty());
  const Entry entry = {soft::kMagic, index};
  const std::span<const Entry, 1> bytes(&entry, 1);
  return soft::send_message(writer_.get(), std::as_bytes(bytes), sockets, MSG_DONTWAIT);
}

void Bundle::adopt(soft::OwnedFd writer, soft::OwnedFd queue) {
  writer_ = std::move(writer);
  queue_ = std::move(queue);
}

int Bundle::look(soft::OwnedFd* sockets, uint32_t most) const {
  // With SO_PEEK_OFF, each peek continues behind the one before it. Taking the messages out would lose the sockets if
  // dappled died meanwhile.
  const int from_start = 0;
  if (setsockopt(queue_.get(), SOL_SOCKET, SO_PEEK_OFF, &from_start, sizeof from_start) != 0) return -errno;
  uint32_t count = 0;
  while (count < most) {
    Entry entry;
    soft::Descriptors descriptors;
    const ssize_t size = soft::receive_message(queue_.get(), std::as_writable_bytes(std::span<Entry, 1>(&entry, 1)),
                                               descriptors, MSG_PEEK | MSG_DONTWAIT);
    if (size == -EAGAIN || size == 0) break;
    if (size < 0) return static_cast<int>(size);
    if (size != sizeof entry || entry.magic != soft::kMagic || entry.index != count) return 0;
    if (descriptors.count == 0 || descriptors.count > most - count) return 0;
    for (size_t i = 0; i < descriptors.count; i++) sockets[count++] = std::move(descriptors.fds[i]);
  }
  return static_cast<int>(count);
}

void Bundle::close() {
  writer_.reset();
  queue_.reset();
}

}  // namespace dapple::dappled
