// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// order=weak of DAPPLE_FAULTS: a queue pair that uses the freedom which its transport leaves it.
#pragma once

#include <memory>

#include "provider/soft/weak_order/weak_memory.hpp"
#include "provider/system/random.hpp"
#include "roce/queue_pair_layer.hpp"

namespace dapple::soft {

// The requests of the queue pair begin late, pause between two packets, and fetch their bytes then. The answers to the
// peer's Reads leave late, so that later Writes and Sends of the peer overtake them. The bytes of the peer's Writes
// become visible late. The rest is as without it: two Writes of one queue pair become visible in their order, and
// before anything that follows them on this queue pair. A seed selects the waits.
class WeakQueuePair final : public roce::QueuePairLayer {
 public:
  // `memory` is the engine's.
  WeakQueuePair(std::unique_ptr<roce::QueuePair> engine, std::unique_ptr<WeakMemory> memory, uint64_t seed);
  ~WeakQueuePair() override;
  WeakQueuePair(const WeakQueuePair&) = delete;
  WeakQueuePair& operator=(const WeakQueuePair&) = delete;

  bool modify(const roce::QpAttributes& attributes, uint32_t mask) override;
  roce::PostError post_send(const roce::SendRequest& request) override;
  void receive(roce::Now now, const roce::Packet& packet) override;
  // Nothing leaves a queue pair that waits, acknowledgements included.
  bool transmit(roce::Now now, roce::PacketSink& sink) override;
  roce::Time deadline() const override;
  void expire(roce::Now now) override;
  void observed_by(roce::RequestObserver& observer) override {
    is_observed_ = true;
    roce::QueuePairLayer::observed_by(observer);
  }

 private:
  void assert_consistent() const;
  bool waits() const { return wait_ != 0 || until_ != roce::kNever; }
  // Draws a wait with this probability. The wait begins with the next transmit().
  void draw_wait(double probability);
  roce::Time draw_time();
  void place_held();

  const std::unique_ptr<WeakMemory> memory_;
  RandomSequence random_;
  bool is_observed_ = false;
  roce::Time wait_ = 0;                 // one that is to begin
  roce::Time until_ = roce::kNever;     // the end of one that has begun
  roce::Time place_at_ = roce::kNever;  // the time at which kept bytes are placed
};

}  // namespace dapple::soft
