// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The engine of a raw packet queue pair: each Send is an Ethernet frame as the program has built it, and each receive
// takes one. A work queue and an RSS queue pair have such an engine, too; neither sends.
#pragma once

#include <stdint.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>

#include "provider/soft/raw/pacer.hpp"
#include "roce/core/core.hpp"

namespace dapple::soft {

class FrameSender {
 public:
  // Sends frames, in order. Returns the number of those that have left; the network may lose them. `error`: 0, or the
  // reason for which the next one stays. EAGAIN: there is no room now; EMSGSIZE: the interface's MTU is smaller.
  virtual size_t send(std::span<const iovec> frames, int& error) = 0;

 protected:
  ~FrameSender() = default;
};

class RawQueuePair final : public roce::Core {
 public:
  // Null without memory. `sender` and `pacer` may be null if the send queue has no room; they outlive it.
  static std::unique_ptr<RawQueuePair> create(const roce::QpConfig& qp_config, roce::Memory& qp_memory,
                                              roce::CompletionSink& sent_to, roce::CompletionSink& received_to,
                                              roce::ReceiveSource& qp_receives, roce::EventSink& qp_events,
                                              FrameSender* sender, Pacer* pacer);

  // A frame is the packet's payload. Its `info` is null: other packets are for RoCE's queue pairs, and are ignored.
  void receive(roce::Now now, const roce::Packet& packet) override;
  bool transmit(roce::Now now, roce::PacketSink& sink) override;
  roce::Owes owes() const override { return sends.empty() || rests_ ? roce::Owes::kNothing : roce::Owes::kMore; }
  roce::Time deadline() const override { return rests_ ? pacer_->next() : roce::kNever; }
  void expire(roce::Now) override { rests_ = false; }

 private:
  static constexpr size_t kFramesAtOnce = 32;
  static constexpr size_t kRoom = 128 * 1024;

  RawQueuePair(const roce::QpConfig& qp_config, roce::Memory& qp_memory, roce::CompletionSink& sent_to,
               roce::CompletionSink& received_to, roce::ReceiveSource& qp_receives, roce::EventSink& qp_events,
               FrameSender* sender, Pacer* pacer)
      : Core(qp_config, qp_memory, sent_to, received_to, qp_receives, qp_events), sender_(sender), pacer_(pacer) {}

  bool prepare(roce::QpState to, const roce::QpAttributes& next) override;
  void entered(roce::QpState from) override;
  void tell_progress(roce::QpAttributes&) const override {}

  // Writes the request's frame at `to`. kSuccess, or the status with which the request completes.
  roce::CompletionStatus build(const roce::SendEntry& entry, std::span<std::byte> to, size_t& size);
  // Sends the first requests.
  SendStep send_some(roce::Now now);

  FrameSender* const sender_;
  Pacer* const pacer_;
  bool rests_ = false;                 // the pacer holds the next frame back
  std::unique_ptr<std::byte[]> room_;  // for the frames of a step
};

}  // namespace dapple::soft
