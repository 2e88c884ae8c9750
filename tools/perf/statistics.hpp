// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dapple::perf {

// Statistics of latencies, in microseconds.
struct LatencyStatistics {
  double min = 0;
  double max = 0;
  double typical = 0;  // the median
  double average = 0;
  double deviation = 0;
  double percentile_99 = 0;
  double percentile_99_9 = 0;
};

// samples_us: at least one; sorted on return.
LatencyStatistics latency_of(std::vector<double>& samples_us);

struct BandwidthStatistics {
  double peak_mib_s = 0;
  double average_mib_s = 0;
  double average_gbit_s = 0;
  double rate_mpps = 0;  // million messages a second
};

// completed_s: the times at which messages completed, ascending, in seconds since the first was posted; at least one.
// The peak is the rate of the fastest window of this many messages.
BandwidthStatistics bandwidth_of(const std::vector<double>& completed_s, uint64_t size, size_t window);

}  // namespace dapple::perf
