// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The counters of flows. Each point says which counter a value of ibv_read_counters() has.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace dapple::soft {

// Guarded by the lock of receiving.
class FlowCounters {
 public:
  static constexpr size_t kMaxPoints = 64;
  enum class Kind : uint8_t { kPackets, kBytes };

  // The value at this index has the counter, beside others of the same index. False if there is no room.
  bool attach(Kind kind, uint32_t index) {
    if (count_ == kMaxPoints) return false;
    points_[count_++] = {kind, index};
    return true;
  }
  bool is_attached() const { return count_ != 0; }
  // The number of values that the indexes need.
  uint64_t size() const {
    uint64_t size = 0;
    for (const Point& point : attached()) size = std::max(size, uint64_t{point.index} + 1);
    return size;
  }

  // A flow has matched a frame.
  void add(size_t bytes) {
    packets_++;
    bytes_ += bytes;
  }
  // `values` has room for all indexes. Those without a counter become 0.
  void read(std::span<uint64_t> values) const {
    std::fill(values.begin(), values.end(), 0);
    for (const auto& [kind, index] : attached()) values[index] += kind == Kind::kPackets ? packets_ : bytes_;
  }

 private:
  struct Point {
    Kind kind;
    uint32_t index;
  };

  std::span<const Point> attached() const { return {points_, count_}; }

  Point points_[kMaxPoints] = {};
  size_t count_ = 0;
  uint64_t packets_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace dapple::soft
