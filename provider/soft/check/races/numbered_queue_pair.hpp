// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair whose requests have stamps that its peer finds by the PSNs of their packets, and which finds those of
// its peer. On the way to a peer on another host marks go ahead of its packets.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "provider/soft/check/races/marking_sink.hpp"
#include "provider/soft/check/races/races.hpp"
#include "provider/soft/objects/objects.hpp"
#include "roce/queue_pair_layer.hpp"

namespace dapple::soft::check {

class NumberedQueuePair final : public roce::QueuePairLayer {
 public:
  NumberedQueuePair(std::unique_ptr<roce::QueuePair> engine, Races& races, const Qp& qp)
      : roce::QueuePairLayer(std::move(engine)), races_(races), qp_(qp) {}
  ~NumberedQueuePair() override { races_.end(qp_.qpn); }
  NumberedQueuePair(const NumberedQueuePair&) = delete;
  NumberedQueuePair& operator=(const NumberedQueuePair&) = delete;

  bool modify(const roce::QpAttributes& attributes, uint32_t mask) override;
  roce::PostError post_send(const roce::SendRequest& request) override;
  void receive(roce::Now now, const roce::Packet& packet) override;
  void receive_for_host(const roce::Packet& packet) override;
  bool transmit(roce::Now now, roce::PacketSink& sink) override;
  roce::Time deadline() const override;
  void expire(roce::Now now) override;

  // The functions below are called by the engine.

  // A peer's request is going to access this memory of the process. `range`: as the key knows it.
  std::optional<Races::Found> access(const roce::RemoteRange& range, uintptr_t memory, NotedAccess::Kind kind);
  // The peer's Read or atomic has found a value there.
  void answer(const roce::RemoteRange& range, uintptr_t memory, NotedAccess::Kind kind);
  // A message goes to the memory of a receive that was posted then.
  std::optional<Races::Found> fill(Races::Range range, uint64_t posted);
  // Returns races that the peer has told of.
  std::vector<Races::Told> complete(const roce::Completion& completion);

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  bool is_connected() const;
  bool knows_peer() const;
  void locate();
  bool may_mark() const;
  void take_question(roce::Now now);
  bool ask(roce::Now now, roce::PacketSink& sink);
  bool takes_answer(const roce::Packet& packet);

  class Marks;
  // A Read of the peer. Its bytes are read later than its packet comes.
  struct PeersRead {
    roce::RemoteRange range;
    uint32_t psn;
  };
  static constexpr size_t kMaxReads = 256;

  Races& races_;
  const Qp& qp_;
  bool is_located_ = true;  // `races_` has the addresses of the connection
  uint32_t next_psn_ = 0;   // of the next request
  Races::Arrival arrival_;
  roce::SendOpcode opcode_{};             // of the packet
  std::deque<PeersRead> reads_;           // in order, as they are answered
  std::optional<MarkQuestion> question_;  // that has not been sent yet
  HeldPackets held_;
};

}  // namespace dapple::soft::check
