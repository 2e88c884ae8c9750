// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The bytes of two messages that come one behind the other are fetched by one system call: the call itself takes as
// long as the copy of some dozens of kilobytes. The second message's bytes are in its receive then before its packet
// arrives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/objects/queues/receive_queue.hpp"
#include "provider/soft/same_host/reference.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// A message whose bytes are in its receive, although its packet has not arrived.
struct AheadOfItsPacket {
  uint64_t arrival = 0;  // the packet's number among all that arrive; 0: there is no such message
  uint64_t receive = 0;  // the receive's number in its queue
  uint32_t qpn = 0;
  const std::byte* bytes = nullptr;
  RingReference reference = {};
};

// What a packet's receiver knows of the packet behind it. All references outlive this.
struct FetchAhead {
  uint64_t arrival;           // the packet's number
  const RingReference* next;  // a copy of the reference of the packet behind it, or null
  roce::Accessor receiver;
  ReceiveQueue& receives;
  MemoryTable& memory;
  AheadOfItsPacket& message;  // the packet's own, or later the next packet's
};

}  // namespace dapple::soft
