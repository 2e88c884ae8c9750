// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/system/random.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// A sink that takes no more packets after some, which the seed counts. It never places a request or refers to bytes:
// a process with order=weak has no placement.
class PausingSink final : public roce::PacketSink {
 public:
  PausingSink(roce::PacketSink& below, RandomSequence& random)
      : PacketSink(below.may_lose_packets()), below_(below), random_(random) {}

  std::byte* reserve(size_t size) override { return pauses_ ? nullptr : below_.reserve(size); }
  void commit(const roce::AddressVector* to) override {
    below_.commit(to);
    pauses_ = random_.happens(kPauseShare);
  }
  // True: it may have been this sink that was full.
  bool pauses() const { return pauses_; }

 private:
  static constexpr double kPauseShare = 1.0 / 8;

  roce::PacketSink& below_;
  RandomSequence& random_;
  bool pauses_ = false;
};

}  // namespace dapple::soft
