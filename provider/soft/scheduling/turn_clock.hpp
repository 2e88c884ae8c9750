// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/common/clock.hpp"
#include "roce/host/clock.hpp"

namespace dapple::soft {

// The time of one turn of work: each clock is read at its first use, if ever.
class TurnClock final : public roce::Clock {
 public:
  roce::Time exact() override {
    if (exact_ == 0) exact_ = now_ns();
    return exact_;
  }
  // The time of the kernel's last tick, which needs no look at the processor's counter.
  roce::Time rough() override {
    if (exact_ != 0) return exact_;
    if (rough_ == 0) rough_ = now_ns(CLOCK_MONOTONIC_COARSE);
    return rough_;
  }
  void restart() { exact_ = rough_ = 0; }

 private:
  roce::Time exact_ = 0;
  roce::Time rough_ = 0;
};

}  // namespace dapple::soft
