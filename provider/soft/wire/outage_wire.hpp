// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <memory>
#include <utility>

#include "provider/soft/wire/outages.hpp"

namespace dapple::soft {

// Loses the packets of ports that are down by plan. Other programs have the wire below without this one.
class OutageWire final : public Wire, private ArrivalSink {
 public:
  // The outages outlive the wire.
  OutageWire(std::unique_ptr<Wire> below, const Outages& outages) : below_(std::move(below)), outages_(outages) {}

  SendBatch* make_batch() override;
  size_t receive(ArrivalSink& sink) override;
  int receive_fd() const override { return below_->receive_fd(); }
  void expect_datagrams() override { below_->expect_datagrams(); }
  int join(const uint8_t group[16], uint32_t netdev_index) override { return below_->join(group, netdev_index); }
  int leave(const uint8_t group[16], uint32_t netdev_index) override { return below_->leave(group, netdev_index); }
  bool instrumented() const override { return true; }
  void close_in_child() override { below_->close_in_child(); }

 private:
  void arrived(const Arrival& arrival) override;
  void much_arrived() override { sink_->much_arrived(); }

  const std::unique_ptr<Wire> below_;
  const Outages& outages_;
  ArrivalSink* sink_ = nullptr;  // of the call of receive() that runs
};

}  // namespace dapple::soft
