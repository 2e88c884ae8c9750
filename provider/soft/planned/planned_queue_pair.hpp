// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cassert>
#include <memory>
#include <utility>

#include "provider/soft/objects/objects.hpp"
#include "roce/queue_pair_layer.hpp"

namespace dapple::soft {

// After a completion that has failed by plan (planned_completions.hpp) the queue pair is in error. It changes its state
// before its lock is released: another thread may have polled the completion, and looks at the queue pair next.
class PlannedQueuePair final : public roce::QueuePairLayer {
 public:
  PlannedQueuePair(std::unique_ptr<roce::QueuePair> engine, QpEvents& events)
      : roce::QueuePairLayer(std::move(engine)), events_(events) {}

  bool modify(const roce::QpAttributes& attributes, uint32_t mask) override {
    const bool modified = roce::QueuePairLayer::modify(attributes, mask);
    fail_by_plan();
    return modified;
  }
  roce::PostError post_send(const roce::SendRequest& request) override {
    const roce::PostError error = roce::QueuePairLayer::post_send(request);
    fail_by_plan();
    return error;
  }
  void receives_posted() override {
    roce::QueuePairLayer::receives_posted();
    fail_by_plan();
  }
  void receive(roce::Now now, const roce::Packet& packet) override {
    roce::QueuePairLayer::receive(now, packet);
    fail_by_plan();
  }
  bool transmit(roce::Now now, roce::PacketSink& sink) override {
    const bool more = roce::QueuePairLayer::transmit(now, sink);
    fail_by_plan();
    return more;
  }
  void expire(roce::Now now) override {
    roce::QueuePairLayer::expire(now);
    fail_by_plan();
  }

 private:
  void fail_by_plan() {
    if (events_.take_planned_error()) roce::QueuePairLayer::modify({.state = roce::QpState::kError}, roce::kState);
    assert(state_ == engine().state());
  }

  QpEvents& events_;
};

}  // namespace dapple::soft
