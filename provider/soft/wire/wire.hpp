// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface between the verbs objects and the wire below them (UDP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/network/addresses.hpp"
#include "roce/host/ports.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

struct RingReference;

struct Path : Addresses {
  uint32_t netdev_index = 0;  // the device's; the scope of link-local addresses
  uint32_t flow_label = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 64;
  uint32_t source_qpn = 0;
  uint32_t destination_qpn = 0;  // its slot and the peer choose the UDP source port
};

// A received packet, with its ICRC checked and removed. Valid during the call that passes it.
struct Arrival {
  const uint8_t* source = nullptr;  // GIDs, of 16 bytes each
  const uint8_t* destination = nullptr;
  uint32_t netdev_index = 0;                               // where it came in; 0 if unknown
  std::span<const std::byte> transport;                    // from the BTH to the pad; its sender may still change it
  std::span<const std::byte> headers;                      // a copy of its first bytes, for roce::parse()
  std::span<const std::byte> grh;                          // kGrhSize bytes for UD receives
  const roce::Acknowledgement* acknowledgement = nullptr;  // see roce::Packet
  const RingReference* reference = nullptr;                // to the payload, if `transport` ends with the headers
  // A copy of the next packet's reference, if `transport` ends a message, and the next packet is a whole message from
  // the same queue pair to the same one.
  const RingReference* next_reference = nullptr;
};

class ArrivalSink {
 public:
  virtual void arrived(const Arrival& arrival) = 0;
  // Many bytes have arrived at once, and more may wait. Their sender may wait for an acknowledgement.
  virtual void much_arrived() {}

 protected:
  ~ArrivalSink() = default;
};

// Collects packets for one path after the other, and sends them in as few system calls as it can. Belongs to one thread
// at a time. reserve() sends when its room is used up; it gives nullptr if the kernel's socket takes no more now.
class SendBatch : public roce::PacketSink {
 public:
  virtual ~SendBatch() = default;
  // The path of the packets that are committed from now on. It is copied.
  virtual void set_path(const Path& path) = 0;
  // Sends all committed packets. False if the socket is full: the rest is dropped, as on a network.
  virtual bool flush() = 0;
};

// receive() and the functions of a batch are not cancellation points, and do not change errno.
class Wire {
 public:
  virtual ~Wire() = default;
  // Null without memory.
  virtual SendBatch* make_batch() = 0;
  // Passes on the waiting packets, for at most some dozens of system calls, and returns their number. Does not wait.
  // One thread at a time.
  virtual size_t receive(ArrivalSink& sink) = 0;
  // Readable when packets wait for receive().
  virtual int receive_fd() const = 0;
  // From now on the GRHs of datagrams show the hop limit and the traffic class of their packets; before, the usual
  // ones. Any thread.
  virtual void expect_datagrams() {}
  // IBTA A17.9.1: a multicast group on a netdev. 0 or an errno. One thread at a time.
  virtual int join(const uint8_t group[16], uint32_t netdev_index) = 0;
  virtual int leave(const uint8_t group[16], uint32_t netdev_index) = 0;
  // Records or disturbs packets, so none may take another way.
  virtual bool instrumented() const { return false; }
  // In a child of fork(): closes the descriptors that belong to the parent. Nothing else is called afterwards.
  virtual void close_in_child() {}
};

}  // namespace dapple::soft
