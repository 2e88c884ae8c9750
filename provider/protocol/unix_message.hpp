// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One message with descriptors over a SOCK_SEQPACKET socket. No signal interrupts these functions, none raises SIGPIPE,
// and received descriptors are close-on-exec. Descriptors beyond `kMaxMessageDescriptors` are closed.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <span>

#include "provider/protocol/messages.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

struct Descriptors {
  OwnedFd fds[kMaxMessageDescriptors];
  size_t count = 0;
};

// 0, or an errno.
int send_message(int socket, std::span<const std::byte> message, std::span<const int> descriptors, int flags = 0);

// The message's size, 0 at the end of the connection, or a negative errno; -EMSGSIZE if the message is larger than
// `room`. `flags` as for recvmsg().
ssize_t receive_message(int socket, std::span<std::byte> room, Descriptors& descriptors, int flags = 0);

// The same for a message without descriptors, with less work for the kernel. Descriptors that come are closed.
ssize_t receive_message(int socket, std::span<std::byte> room);

// An abstract name. Returns the length for bind() and connect().
socklen_t abstract_address(const char* name, sockaddr_un& address);

// Tells whether magic, version, kind and size match. `Message` begins with a MessageHeader.
template <class Message>
bool well_formed(std::span<const std::byte> bytes, uint16_t kind, Message& message) {
  if (bytes.size() != sizeof(Message)) return false;
  __builtin_memcpy(static_cast<void*>(&message), bytes.data(), sizeof(Message));
  const MessageHeader& header = message.header;
  return header.magic == kMagic && header.version == kProtocolVersion && header.kind == kind &&
         header.size == sizeof(Message);
}

template <class Message>
std::span<const std::byte> seal(Message& message, uint16_t kind) {
  message.header.kind = kind;
  message.header.size = sizeof(Message);
  return std::as_bytes(std::span<Message, 1>(&message, 1));
}

}  // namespace dapple::soft
