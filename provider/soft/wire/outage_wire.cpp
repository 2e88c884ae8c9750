// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/outage_wire.hpp"

#include <new>

namespace dapple::soft {
namespace {

class OutageBatch final : public SendBatch {
 public:
  OutageBatch(std::unique_ptr<SendBatch> below, const Outages& outages) : below_(std::move(below)), outages_(outages) {}

  std::byte* reserve(size_t size) override { return below_->reserve(size); }
  // The next packet takes the place of one that is lost.
  void commit(const roce::AddressVector* to) override {
    if (!loses_) below_->commit(to);
  }
  void set_path(const Path& path) override {
    loses_ = outages_.loses(path);
    below_->set_path(path);
  }
  bool flush() override { return below_->flush(); }

 private:
  const std::unique_ptr<SendBatch> below_;
  const Outages& outages_;
  bool loses_ = false;
};

}  // namespace

SendBatch* OutageWire::make_batch() {
  std::unique_ptr<SendBatch> below(below_->make_batch());
  return below == nullptr ? nullptr : new (std::nothrow) OutageBatch(std::move(below), outages_);
}

size_t OutageWire::receive(ArrivalSink& sink) {
  sink_ = &sink;
  return below_->receive(*this);
}

void OutageWire::arrived(const Arrival& arrival) {
  if (!outages_.loses(arrival)) sink_->arrived(arrival);
}

}  // namespace dapple::soft
