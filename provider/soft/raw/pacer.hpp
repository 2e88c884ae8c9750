// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Holds the frames of a queue pair back to a rate. It is a token bucket, kept as the time at which the bucket is full
// again. Confined to the queue pair's lock; the caller has the clock.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "roce/host/clock.hpp"

namespace dapple::soft {

// In kilobits per second, as struct ibv_qp_rate_limit_attr. A lower rate than the least is no rate.
inline constexpr uint32_t kMinRate = 1;
inline constexpr uint32_t kMaxRate = 100'000'000;

class Pacer {
 public:
  // 0: no limit. `burst`: the bytes that may leave at once after a pause, and then one frame more; 0: those of 100 us,
  // because the device's threads do not wake up earlier. The next turn begins with it.
  void set(uint32_t rate_kbps, uint32_t burst = 0) {
    assert(rate_kbps <= kMaxRate);
    rate_ = rate_kbps;
    tolerance_ = rate_ == 0 || burst == 0 ? kDefaultBurst : time_of(burst);
    if (rate_ == 0) full_ = 0;
  }
  uint32_t rate() const { return rate_; }
  bool is_on() const { return rate_ != 0; }

  // A turn begins, under a rate. The bucket lacks as many bytes as it did at an earlier rate, or every change of the
  // rate would let a burst go.
  void begin(roce::Time now) {
    if (filling_rate_ == rate_) return;
    full_ = full_ <= now ? 0 : now + time_of(bytes_in(full_ - now));
    filling_rate_ = rate_;
  }
  // The time from which the next frame may leave.
  roce::Time next() const { return full_ < tolerance_ ? 0 : full_ - tolerance_; }
  bool may_send(roce::Time now) const {
    assert(filling_rate_ == rate_);
    return next() <= now;
  }
  // A frame leaves.
  void sent(roce::Time now, size_t bytes) { full_ = std::max(full_, now) + time_of(bytes); }

 private:
  static constexpr roce::Time kDefaultBurst = 100'000;
  static constexpr uint64_t kBitsPerByte = 8, kNsPerMs = 1'000'000;

  // Rounded up, so that the rate is never exceeded.
  roce::Time time_of(uint64_t bytes) const { return (bytes * kBitsPerByte * kNsPerMs + rate_ - 1) / rate_; }

  // Rounded up. The bucket lacks 4 GB and a frame at most, so nothing overflows.
  uint64_t bytes_in(roce::Time time) const {
    return (time * filling_rate_ + kBitsPerByte * kNsPerMs - 1) / (kBitsPerByte * kNsPerMs);
  }

  uint32_t rate_ = 0;
  uint32_t filling_rate_ = 0;  // that of full_
  roce::Time tolerance_ = kDefaultBurst;
  roce::Time full_ = 0;
};

}  // namespace dapple::soft
