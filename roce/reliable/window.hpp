// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The number of packets that a queue pair may have in flight. Its peer's socket buffer holds from fifty to a few
// hundred, and the peer cannot report this: a loss is the only sign. Additive increase, multiplicative decrease, as TCP
// does.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace dapple::roce {

class CongestionWindow {
 public:
  // The default socket buffer of Linux, 212,992 bytes, holds 25 packets of 4,120 bytes or 92 of 1,084. Ours holds twice
  // as many, or more if the system's limit allows; several senders share it.
  void reset(uint32_t mtu) {
    most_ = std::clamp<uint32_t>(kMaxBytes / mtu, 16, kMaxPackets);
    threshold_ = most_;
    packets_ = std::clamp<uint32_t>(kFirstBytes / mtu, 8, most_);
    credit_ = 0;
    assert_consistent();
  }

  uint32_t packets() const { return packets_; }

  void acknowledged(uint32_t count) {
    assert_consistent();
    assert(count > 0);
    if (packets_ < threshold_) {
      packets_ = std::min(packets_ + count, most_);
      return;
    }
    credit_ += count;
    if (credit_ < packets_) return;
    credit_ -= packets_;
    packets_ = std::min(packets_ + 1, most_);
  }

  void lost() {
    threshold_ = std::max(packets_ / 2, kMin);
    packets_ = threshold_;
    credit_ = 0;
    assert_consistent();
  }

  // No packet came back.
  void timed_out() {
    threshold_ = std::max(packets_ / 2, kMin);
    packets_ = kMin;
    credit_ = 0;
    assert_consistent();
  }

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const {
    assert(kMin <= packets_ && packets_ <= most_);
    assert(kMin <= threshold_ && threshold_ <= most_);
  }

  static constexpr uint32_t kMaxBytes = 192 * 1024;
  static constexpr uint32_t kMaxPackets = 180;
  static constexpr uint32_t kFirstBytes = 32 * 1024;
  static constexpr uint32_t kMin = 2;

  uint32_t most_ = 16;
  uint32_t threshold_ = 16;
  uint32_t packets_ = 8;
  uint32_t credit_ = 0;
};

}  // namespace dapple::roce
