// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The mark of a slot in use: a socket bound to the slot's abstract name, which its owner holds as long as it lives. It
// shows the owner to every dappled, also to one that has just started. The slot also stays in use while a forked child
// has a copy of the socket.
#pragma once

#include <stdio.h>
#include <sys/socket.h>

#include <cstdint>

#include "provider/protocol/messages.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled {

// The name's text, in `name`.
inline const char* slot_name(uint32_t slot, char (&name)[32]) {
  snprintf(name, sizeof name, "%s%u", soft::kSlotName, slot);
  return name;
}

// Empty if another process has the slot (errno is EADDRINUSE), or on failure.
inline soft::OwnedFd take_lease(uint32_t slot) {
  char name[32];
  sockaddr_un address;
  const socklen_t size = soft::abstract_address(slot_name(slot, name), address);
  soft::OwnedFd lease(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (lease && bind(lease.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) lease.reset();
  return lease;
}

// Also true if this process lacks the descriptor or the memory for the check.
inline bool slot_in_use(uint32_t slot) {
  return !take_lease(slot);
}

}  // namespace dapple::dappled
