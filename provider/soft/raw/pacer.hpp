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

#include "roce/clock.hpp"

namespace dapple::soft {

// In kilobits per second, as struct ibv_qp_rate_limit_attr. A lower rate than the least is no rate.
inline constexpr uint32_t kMinRate = 1;
inline constexpr uint32_t kMaxRate = 100'000'000;

class Pacer {
 public:
  // 0: no limit. `burst`: the bytes that may leave at once after a pause, and then one frame more; 0: those of 100 us,
  // because the device's threads do not wake up earlier.
  void set(uint32_t rate_kbps, uint32_t burst = 0) {
    assert(rate_kbps <= kMaxRate);
    rate_ = rate_kbps;
    tolerance_ = rate_ == 0 || burst == 0 ? kDefaultBurst : time_of(burst);
    // A bucket that is emptied at another rate begins full.
    full_ = 0;
  }
  uint32_t rate() const { return rate_; }
  bool is_on() const { return rate_ != 0; }

  // The time from which the next frame may leave.
  roce::Time next() const { return full_ < tolerance_ ? 0 : full_ - tolerance_; }
  bool may_send(roce::Time now) const { return next() <= now; }
  // A frame leaves.
  void sent(roce::Time now, size_t bytes) { full_ = std::max(full_, now) + time_of(bytes); }

 private:
  static constexpr roce::Time kDefaultBurst = 100'000;

  // Rounded up, so that the rate is never exceeded.
  roce::Time time_of(uint64_t bytes) const {
    constexpr uint64_t kBitsPerByte = 8, kNsPerMs = 1'000'000;
    return (bytes * kBitsPerByte * kNsPerMs + rate_ - 1) / rate_;
  }

  uint32_t rate_ = 0;
  roce::Time tolerance_ = kDefaultBurst;
  roce::Time full_ = 0;
};

}  // namespace dapple::soft
