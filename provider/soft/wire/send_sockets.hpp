// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The sockets that a process sends from: one for each IP version and slot of the destination. A receiver's GRO merges
// packets of equal addresses and ports, and steers them by the first one's QP number, so packets to different slots
// must differ in their source port. None is connected: the kernel counts the IPv4 identifications of a connected socket
// up from a random number, and the ICRC covers them.
#pragma once

#include <atomic>
#include <cstdint>

#include "provider/common/mutex.hpp"
#include "provider/protocol/slot_numbers.hpp"

namespace dapple::soft {

// The kernel needs a tenth of a microsecond for a hop limit and a traffic class beside a packet. So a socket has the
// class of its first packet, and only packets of another class carry theirs as ancillary data.
struct PacketClass {
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;

  bool operator==(const PacketClass&) const = default;
};

struct SendSocket {
  int fd = -1;
  uint16_t port = 0;  // 49152 .. 65535, as IBTA A17.9.2.4.1 recommends
  PacketClass usual;
};

// Any thread.
class SendSockets {
 public:
  SendSockets() = default;
  ~SendSockets() { close_all(); }
  SendSockets(const SendSockets&) = delete;
  SendSockets& operator=(const SendSockets&) = delete;

  // Makes the socket at first use, for packets like `first`. 0, or an errno.
  int get(bool ipv6, uint32_t slot, PacketClass first, SendSocket& socket);
  // In a child of fork(), which gets no other sockets from this object.
  void close_all();

 private:
  // The last one stands for the numbers of nobody's slot.
  static constexpr uint32_t kSlots = kMaxSlots + 1;
  Mutex mutex_{LockRank::kSendSockets};
  // From the top: descriptor plus one (32 bits), traffic class, hop limit, port (16 bits). 0: none yet.
  std::atomic<uint64_t> sockets_[kSlots][2] = {};  // IPv4 and IPv6
};

}  // namespace dapple::soft
