// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dapple::perf {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

// The smallest sample that this part of all samples does not exceed.
double percentile(const std::vector<double>& sorted, double part) {
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

LatencyStatistics latency_of(std::vector<double>& samples_us) {
  std::sort(samples_us.begin(), samples_us.end());
  const auto count = static_cast<double>(samples_us.size());
  LatencyStatistics s;
  s.min = samples_us.front();
  s.max = samples_us.back();
  s.typical = percentile(samples_us, 0.5);
  s.average = std::accumulate(samples_us.begin(), samples_us.end(), 0.0) / count;
  double squares = 0;
  for (const double sample : samples_us) squares += (sample - s.average) * (sample - s.average);
  s.deviation = std::sqrt(squares / count);
  s.percentile_99 = percentile(samples_us, 0.99);
  s.percentile_99_9 = percentile(samples_us, 0.999);
  return s;
}

BandwidthStatistics bandwidth_of(const std::vector<double>& completed_s, uint64_t size, size_t window) {
  const auto count = completed_s.size();
  // A time below the clock's resolution must not be a divisor.
  const auto per_second = [](double messages, double seconds) { return messages / std::max(seconds, 1e-9); };
  const double rate = per_second(static_cast<double>(count), completed_s.back());
  double peak = rate;
  for (size_t i = window; window > 0 && i < count; ++i) {
    peak = std::max(peak, per_second(static_cast<double>(window), completed_s[i] - completed_s[i - window]));
  }
  const double mib = static_cast<double>(size) / kMib;
  return {peak * mib, rate * mib, rate * static_cast<double>(size) * 8 / 1e9, rate / 1e6};
}

}  // namespace dapple::perf
