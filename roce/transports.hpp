// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The queue pairs of each transport.
#pragma once

#include "roce/core/core.hpp"
#include "roce/core/inbound.hpp"
#include "roce/reliable/requester.hpp"
#include "roce/reliable/responder.hpp"

namespace dapple::roce {

struct DataPacket;

class ReliableConnection final : public Core {
 public:
  using Core::Core;
  ReliableConnection* reliable_connection() override { return config.type == QpType::kRc ? this : nullptr; }
  void receive(Now now, const Packet& packet) override;
  bool transmit(Now now, PacketSink& sink) override;
  Owes owes() const override;
  Time deadline() const override { return requester_.deadline(); }
  void expire(Now now) override { requester_.expire(now); }

  // The short way of plain Sends (at_once.hpp). The ports are those of create(), as the host's own types.
  //
  // Posts a Send and writes its packet, with an acknowledgement that is due, if that is one packet and nothing else has
  // to be done before. False: it is not posted, and post_send() and transmit() decide.
  //
  // The sink has reserve(), commit() and may_lose_packets() as a PacketSink, and take_along(acknowledgement): the
  // packet of the next commit() brings this to the peer, too. It stays valid until then. False: it must go as a packet.
  template <typename Sink, typename MemoryType>
  bool send_at_once(Now now, const PlainSend& request, Sink& sink, MemoryType& own_memory);
  // Executes a packet if it is the next one, and can be executed. False: receive() decides; it ignores an
  // acknowledgement that this call has taken.
  template <typename MemoryType, typename Receives, typename Completions>
  bool receive_at_once(Now now, const PlainPacket& packet, MemoryType& own_memory, Receives& own_receives,
                       Completions& own_completions);

 private:
  bool prepare(QpState to, const QpAttributes& next) override;
  void entered(QpState from) override;
  void tell_progress(QpAttributes& now) const override;

  Requester requester_{*this};
  Responder responder_{*this};
  bool requests_filled_sink_ = false;  // in the last turn
};

// A request of an unreliable queue pair is done once its packets are handed out.
class Unreliable : public Core {
 public:
  using Core::Core;
  Time deadline() const final { return kNever; }
  void expire(Now) final {}
  bool transmit(Now now, PacketSink& sink) final;
  Owes owes() const final { return sends.empty() ? Owes::kNothing : Owes::kMore; }

 protected:
  bool prepare(QpState, const QpAttributes&) override { return true; }
  void entered(QpState from) override;
  void tell_progress(QpAttributes& now) const override;
  // Sets the transport's part of a packet.
  virtual void address(const SendEntry& entry, DataPacket& packet) const = 0;

  uint32_t next_psn_ = 0;

 private:
  SendStep step(PacketSink& sink);
  SendStep send_packet(SendEntry& entry, PacketSink& sink);
  SendStep step_local(const SendEntry& entry);

  uint32_t packet_ = 0;  // the next one of the request at the head
};

class UnreliableConnection final : public Unreliable {
 public:
  using Unreliable::Unreliable;
  void receive(Now now, const Packet& packet) override;

 private:
  void entered(QpState from) override;
  void tell_progress(QpAttributes& now) const override;
  void address(const SendEntry& entry, DataPacket& packet) const override;
  void drop_message(InboundError error, const Packet& packet);

  Inbound inbound_{*this};
  uint32_t expected_psn_ = 0;
  bool established_ = false;
};

class UnreliableDatagram final : public Unreliable {
 public:
  using Unreliable::Unreliable;
  void receive(Now now, const Packet& packet) override;

 private:
  void address(const SendEntry& entry, DataPacket& packet) const override;
  DroppedMessage reason_to_drop(const Packet& packet) const;
};

}  // namespace dapple::roce
