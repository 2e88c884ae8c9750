// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "roce/core/queue_pair.hpp"

namespace dapple::roce {

// Between the host and a queue pair's engine: passes everything on. A layer that changes when something happens
// overrides its functions.
class QueuePairLayer : public QueuePair {
  // Calls the engine, which may change its state.
  template <typename Call>
  auto followed(Call call) {
    struct Follow {
      QueuePairLayer& layer;
      ~Follow() { layer.state_ = layer.engine_->state(); }
    } const follow{*this};
    return call();
  }

 public:
  bool modify(const QpAttributes& attributes, uint32_t mask) override {
    return followed([&] { return engine_->modify(attributes, mask); });
  }
  QpAttributes attributes() const override { return engine_->attributes(); }
  PostError post_send(const SendRequest& request) override {
    return followed([&] { return engine_->post_send(request); });
  }
  PostError check_send(const SendRequest& request, uint32_t ahead) const override {
    return engine_->check_send(request, ahead);
  }
  void receives_posted() override {
    followed([&] { engine_->receives_posted(); });
  }
  void receive(Now now, const Packet& packet) override {
    followed([&] { engine_->receive(now, packet); });
  }
  void receive_for_host(const Packet& packet) override { engine_->receive_for_host(packet); }
  bool transmit(Now now, PacketSink& sink) override {
    return followed([&] { return engine_->transmit(now, sink); });
  }
  Owes owes() const override { return engine_->owes(); }
  Time deadline() const override { return engine_->deadline(); }
  // A layer with a deadline of its own calls it at that time, too.
  void expire(Now now) override {
    if (now.exact() >= engine_->deadline()) followed([&] { engine_->expire(now); });
  }
  void observed_by(RequestObserver& observer) override { engine_->observed_by(observer); }
  const QpCounters& counters() const override { return engine_->counters(); }
  uint64_t outstanding_sends() const override { return engine_->outstanding_sends(); }
  std::optional<SendRequest> oldest_send() const override { return engine_->oldest_send(); }

 protected:
  explicit QueuePairLayer(std::unique_ptr<QueuePair> engine) : engine_(std::move(engine)) {}

  const QueuePair& engine() const { return *engine_; }

 private:
  const std::unique_ptr<QueuePair> engine_;
};

}  // namespace dapple::roce
