// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Between a queue pair's engine and the network: puts marks ahead of packets. An engine fills its packet in the room
// that it gets, so the packet waits in a room of its own until it is known which mark goes first.
#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include "provider/soft/check/races/mark.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft::check {

// The packets that have not found room in the sink below: those of the last commit(), or none. Belongs to a queue pair.
using HeldPackets = std::deque<std::vector<std::byte>>;

class MarkingSink : public roce::PacketSink {
 public:
  // `qpn`: the peer's. `mtu`: of the path.
  MarkingSink(roce::PacketSink& below, HeldPackets& held, uint32_t qpn, uint32_t mtu)
      : below_(below), held_(held), qpn_(qpn), mtu_(mtu) {}

  // False if the sink below takes no more now.
  bool send_held();
  std::byte* reserve(size_t size) final;
  void commit(const roce::AddressVector* to) final;

 protected:
  ~MarkingSink() = default;

  // Calls put() for each mark that goes ahead of this packet.
  virtual void mark(std::span<const std::byte> packet) = 0;
  // Leaves out a mark that is longer than the payload of a packet may be: a network might drop it.
  void put(const Mark& mark);

 private:
  roce::PacketSink& below_;
  HeldPackets& held_;
  const uint32_t qpn_, mtu_;
  std::vector<std::byte> room_;
};

}  // namespace dapple::soft::check
