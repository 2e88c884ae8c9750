// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The sockets that a process sends from. A receiver's GRO merges packets of equal addresses and ports, and steers them
// by the first one's QP number, so packets to different slots must differ in their source port.
#ifndef DAPPLE_PROVIDER_SOFT_SEND_SOCKETS_HPP
#define DAPPLE_PROVIDER_SOFT_SEND_SOCKETS_HPP

#include <atomic>
#include <cstdint>
#include <mutex>

#include "provider/soft/wire.hpp"

namespace dapple::soft {

struct SendSocket {
  int fd = -1;
  uint16_t port = 0;       // 49152 .. 65535, as IBTA A17.9.2.4.1 recommends
  bool connected = false;  // a message needs no address and no ancillary data but the size of its segments
};

// True if packets of both paths have the same IP header.
bool same_flow(const Path& a, const Path& b);

// Any thread.
class SendSockets {
 public:
  SendSockets() = default;
  ~SendSockets() { close_all(); }
  SendSockets(const SendSockets&) = delete;
  SendSockets& operator=(const SendSockets&) = delete;

  // For packets on this path to this slot, always the same one, because GRO delivers packets of two ports in any order.
  // It is connected, so that the kernel looks up no route for each message, or, for multicast groups and when there are
  // many paths, one that all destinations share. Made at first use. 0, or an errno.
  int get(const Path& path, uint8_t slot, SendSocket& socket);
  // In a child of fork(), which gets no other sockets from this object.
  void close_all();

 private:
  static constexpr uint32_t kSlots = 256;
  static constexpr uint32_t kFlows = 64;

  struct Flow {
    Path path;
    uint8_t slot = 0;
    bool taken = false;
    SendSocket socket;  // not connected: none could be made
  };

  int get_shared(bool ipv6, uint8_t slot, SendSocket& socket);
  bool get_connected(const Path& path, uint8_t slot, SendSocket& socket);

  std::mutex mutex_;
  // By a hash of the path and slot. The first flow of an entry keeps it.
  Flow flows_[kFlows];
  // Descriptor plus one in the upper half, port in the lower; 0: none yet.
  std::atomic<uint64_t> sockets_[2][kSlots] = {};
};

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_SEND_SOCKETS_HPP
