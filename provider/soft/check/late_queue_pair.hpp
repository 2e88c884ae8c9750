// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A queue pair that starts some of its requests up to a millisecond late, as a NIC with other work does. The device
// itself sends during the post if it can, which would hide a program that changes its buffer too early.
#pragma once

#include <memory>
#include <utility>

#include "provider/member/random.hpp"
#include "roce/queue_pair.hpp"

namespace dapple::soft::check {

// The engine does everything else.
class LateQueuePair final : public roce::QueuePair {
  // Calls the engine, which may change its state.
  template <typename Call>
  auto followed(Call call) {
    struct Follow {
      LateQueuePair& qp;
      ~Follow() { qp.state_ = qp.engine_->state(); }
    } const follow{*this};
    return call();
  }

 public:
  LateQueuePair(std::unique_ptr<roce::QueuePair> engine, uint64_t seed) : engine_(std::move(engine)), random_(seed) {}
  ~LateQueuePair() override;
  LateQueuePair(const LateQueuePair&) = delete;
  LateQueuePair& operator=(const LateQueuePair&) = delete;

  // Before the process ends: waits until the requests of all have begun, 10 ms at most.
  static void let_all_begin();

  roce::PostError post_send(const roce::SendRequest& request) override;
  // Nothing leaves a queue pair that waits, acknowledgements included.
  bool transmit(roce::Now now, roce::PacketSink& sink) override;
  roce::Time deadline() const override;
  void expire(roce::Now now) override;

  bool modify(const roce::QpAttributes& attributes, uint32_t mask) override {
    return followed([&] { return engine_->modify(attributes, mask); });
  }
  void receives_posted() override {
    followed([&] { engine_->receives_posted(); });
  }
  void receive(roce::Now now, const roce::Packet& packet) override {
    followed([&] { engine_->receive(now, packet); });
  }
  roce::QpAttributes attributes() const override { return engine_->attributes(); }
  roce::PostError check_send(const roce::SendRequest& request, uint32_t ahead) const override {
    return engine_->check_send(request, ahead);
  }
  roce::Owes owes() const override { return engine_->owes(); }
  const roce::QpCounters& counters() const override { return engine_->counters(); }
  uint64_t outstanding_sends() const override { return engine_->outstanding_sends(); }
  const roce::SendRequest* oldest_send() const override { return engine_->oldest_send(); }

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  bool waits() const { return delay_ != 0 || until_ != roce::kNever; }

  const std::unique_ptr<roce::QueuePair> engine_;
  RandomSequence random_;
  uint64_t posts_ = 0;               // so far, when nothing waited
  roce::Time delay_ = 0;             // of a post; the wait begins with the next transmit()
  roce::Time until_ = roce::kNever;  // the end of the wait
};

}  // namespace dapple::soft::check
