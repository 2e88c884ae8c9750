// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/perf/common/parameters.hpp"
#include "tools/perf/connection/local_port.hpp"
#include "tools/perf/statistics.hpp"

namespace dapple::perf {

// The results of one size. Values that a program does not measure are empty.
struct Result {
  uint64_t size = 0;
  uint64_t iterations = 0;
  std::optional<LatencyStatistics> latency;
  std::optional<BandwidthStatistics> bandwidth;
};

struct Report {
  std::string program;
  std::string ia;
  std::string peer;
  bool client = false;
  Parameters parameters;
  std::vector<Result> results;  // empty on a server
  LocalPort local;
};

std::string for_people(const Report& report);
std::string as_json(const Report& report);

}  // namespace dapple::perf
