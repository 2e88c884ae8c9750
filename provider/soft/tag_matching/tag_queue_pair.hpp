// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Between the engine of a queue pair and its layers: shows each packet to TagReceives before the engine takes it, and
// posts the requests of a rendezvous behind it.
#pragma once

#include <memory>
#include <optional>

#include "provider/soft/tag_matching/rendezvous.hpp"
#include "provider/soft/tag_matching/tag_receives.hpp"
#include "roce/queue_pair_layer.hpp"

namespace dapple::soft {

// Guarded by the queue pair's lock.
class TagQueuePair final : public roce::QueuePairLayer, private RendezvousLimits {
 public:
  // `reads`: the send queue is the device's own. `max_message`: bytes.
  TagQueuePair(std::unique_ptr<roce::QueuePair> engine, TagReceives& receives, Rendezvous& rendezvous, bool reads,
               uint64_t max_message);

  bool modify(const roce::QpAttributes& attributes, uint32_t mask) override;
  void receive(roce::Now now, const roce::Packet& packet) override;
  // The program's requests. A send queue of the device's own has no room for them.
  roce::PostError post_send(const roce::SendRequest& request) override;
  roce::PostError check_send(const roce::SendRequest& request, uint32_t ahead) const override;
  uint64_t outstanding_sends() const override;
  std::optional<roce::SendRequest> oldest_send() const override;

 private:
  uint64_t most_to_read() const override;

  TagReceives& receives_;
  Rendezvous& rendezvous_;
  const bool reads_;
  const uint64_t max_message_;
};

}  // namespace dapple::soft
