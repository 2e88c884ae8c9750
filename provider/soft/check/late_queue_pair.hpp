// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair that starts some of its requests up to a millisecond late, as a NIC with other work does. The device
// itself sends during the post if it can, which would hide a program that changes its buffer too early.
#pragma once

#include <memory>
#include <utility>

#include "provider/system/random.hpp"
#include "roce/queue_pair_layer.hpp"

namespace dapple::soft::check {

class LateQueuePair final : public roce::QueuePairLayer {
 public:
  LateQueuePair(std::unique_ptr<roce::QueuePair> engine, uint64_t seed)
      : roce::QueuePairLayer(std::move(engine)), random_(seed) {}
  ~LateQueuePair() override;
  LateQueuePair(const LateQueuePair&) = delete;
  LateQueuePair& operator=(const LateQueuePair&) = delete;

  // Before the process ends: waits until the requests of all have begun, 10 ms at most.
  static void let_all_begin();
  // In a child of fork(): the queue pairs that wait are its parent's.
  static void forget_waits();

  roce::PostError post_send(const roce::SendRequest& request) override;
  // Nothing leaves a queue pair that waits, acknowledgements included.
  bool transmit(roce::Now now, roce::PacketSink& sink) override;
  roce::Time deadline() const override;

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  bool waits() const { return delay_ != 0 || until_ != roce::kNever; }

  RandomSequence random_;
  uint64_t posts_ = 0;               // so far, when nothing waited
  roce::Time delay_ = 0;             // of a post; the wait begins with the next transmit()
  roce::Time until_ = roce::kNever;  // the end of the wait
};

}  // namespace dapple::soft::check
