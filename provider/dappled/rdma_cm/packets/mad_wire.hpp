// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Datagrams of connection management on the wire: UD packets between QP 1 and QP 1, at slot 0's socket. It answers the
// question whether this host takes marks (provider/protocol/mark_question.hpp) itself.
#pragma once

#include <memory>
#include <span>

#include "provider/dappled/rdma_cm/ids/address.hpp"
#include "provider/network/namespace_identity.hpp"
#include "provider/soft/wire/udp_wire.hpp"
#include "roce/cm/ports.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::dappled::rdma_cm {

class MadWire final : private soft::ArrivalSink {
 public:
  class Sink {
   public:
    // `local` and `remote` are the packet's addresses; it came in by this netdev.
    virtual void arrived(const Gid& local, const Gid& remote, uint32_t netdev_index,
                         std::span<const std::byte> mad) = 0;

   protected:
    ~Sink() = default;
  };

  // Null on failure, and `problem` has the reason. The caller owns the socket, the counters, which may be null, and the
  // tap; they outlive the wire.
  static std::unique_ptr<MadWire> open(int socket, bool dual_stack, soft::SlotCounters* counters, soft::PacketTap& tap,
                                       soft::Problem& problem);

  int fd() const { return wire_->receive_fd(); }
  void receive(Sink& sink);
  // A datagram that cannot be sent is lost.
  void send(const roce::cm::Path& path, uint32_t netdev_index, const roce::cm::Mad& mad);

  // Packets for QP 0 or 1 that are not datagrams of a management service: other opcodes, keys or queue pairs.
  uint64_t rejected() const { return rejected_; }

 private:
  MadWire() = default;
  void arrived(const soft::Arrival& arrival) override;
  bool answer(const soft::Arrival& arrival, const roce::Packet& packet);
  void send(soft::Path& path, uint32_t qpn, std::span<const std::byte> mad);

  std::unique_ptr<soft::UdpWire> wire_;
  std::unique_ptr<soft::SendBatch> batch_;
  Sink* sink_ = nullptr;
  uint32_t psn_ = 0;
  uint64_t rejected_ = 0;
  const uint64_t host_ = soft::namespace_identity();
};

}  // namespace dapple::dappled::rdma_cm
