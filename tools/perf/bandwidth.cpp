// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <fmt/format.h>

#include "tools/perf/progress.hpp"
#include "tools/perf/workload.hpp"

namespace dapple::perf {
namespace {

Result measure(Half& half, uint64_t size) {
  const Parameters& parameters = half.parameters;
  // Reads land beside what is written from, and all messages of a kind in the same place.
  const DAT_LMR_TRIPLET local = half.areas.region().segment(half.areas.outbox(), size);
  const RemoteMemory remote = Areas::at(half.peer, half.areas.target());
  std::vector<double> completed_s;
  completed_s.reserve(parameters.iterations);
  Progress progress(fmt::format("{} bytes", size), parameters.iterations);
  uint64_t posted = 0;
  const Clock::time_point begin = Clock::now();
  while (completed_s.size() < parameters.iterations) {
    for (; posted < parameters.iterations && posted - completed_s.size() < parameters.depth; ++posted) {
      half.connection.post(parameters.operation, local, remote);
    }
    half.connection.await_request();
    completed_s.push_back(seconds_between(begin, Clock::now()));
    progress.at(completed_s.size());
  }
  Result result{size, parameters.iterations, {}, {}};
  // Completions are reaped in bursts of up to a queue's length.
  result.bandwidth = bandwidth_of(completed_s, size, 2 * size_t{parameters.depth});
  return result;
}

}  // namespace

std::vector<Result> run_bandwidth_client(Half& half) {
  std::vector<Result> results;
  for (const uint64_t size : half.parameters.sizes()) results.push_back(measure(half, size));
  return results;
}

void run_bandwidth_server(Half& half) {
  if (half.parameters.operation == Operation::kSend) {
    const uint64_t messages = half.parameters.iterations * half.parameters.sizes().size();
    for (uint64_t i = 0; i < messages; ++i) {
      (void)half.connection.await_receive();
      half.connection.post_receive(half.areas.region().segment(half.areas.inbox(), half.parameters.size));
    }
  }
  half.connection.await_end();
}

}  // namespace dapple::perf
