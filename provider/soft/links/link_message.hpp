// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The bytes on a ring's connection after its first message. 0 wakes the other end: the ring's memory has news for it
// (RingMemory::Control). One such byte of the reader brings the descriptor of its table. Any other byte is a Transport,
// the reason why the reader closes the connection, and nothing comes after it.
#pragma once

#include "provider/protocol/unix_message.hpp"
#include "provider/soft/links/transport_table.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// The end of a connection, if it has come.
struct LinkEnd {
  bool come = false;
  Transport why = Transport::kPeerGone;
};

// These functions do not wait. Looking for the end takes the bytes that have woken this process, and descriptors that
// came with them.
LinkEnd look_for_end(const OwnedFd& socket, Descriptors& files);
LinkEnd look_for_end(const OwnedFd& socket);
// The same, but takes nothing.
LinkEnd peek_for_end(const OwnedFd& socket);
void wake(const OwnedFd& socket);
// If the reason cannot be sent, the peer sees only the end.
void say_why(const OwnedFd& socket, Transport why);

}  // namespace dapple::soft
