// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// cm_simulation [SEEDS [FIRST]]: runs two hosts and many hosts with each seed. A failure prints its seed; SEEDS = 1
// prints the events.
#include <cstdio>
#include <cstdlib>

#include "tests/roce-support/cm_simulation.hpp"

using namespace dapple::roce::cm::test;

namespace {

constexpr struct {
  const char* name;
  uint8_t hosts;
  unsigned connections;
} kKinds[] = {{"two hosts", 2, 12}, {"a host with itself", 1, 6}, {"many hosts", 9, 60}};

// Steps that a run of many seeds takes at least once each.
constexpr const char* kSteps[] = {"connect request", "response",       "established",   "rejected",
                                  "unreachable",     "disconnected",   "timewait exit", "SIDR request",
                                  "SIDR reply",      "both connected", "accept",        "reject",
                                  "establish",       "disconnect",     "answer",        "destroy"};

}  // namespace

int main(int argc, char** argv) {
  const uint64_t seeds = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 400;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 1;
  std::map<std::string, unsigned> seen;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    for (const auto& kind : kKinds) {
      Simulation simulation(seed, kind.hosts, kind.connections, seeds == 1);
      const std::string problem = simulation.run();
      if (!problem.empty()) {
        std::printf("FAILED: %s, seed %llu: %s\n", kind.name, static_cast<unsigned long long>(seed), problem.c_str());
        return 1;
      }
      for (const auto& [step, count] : simulation.seen()) seen[step] += count;
      if (seed != first) continue;
      Simulation again(seed, kind.hosts, kind.connections, false);
      again.run();
      if (again.trace_hash() == simulation.trace_hash()) continue;
      std::printf("FAILED: seed %llu takes another way the second time\n", static_cast<unsigned long long>(seed));
      return 1;
    }
  }
  for (const auto& [step, count] : seen) std::printf("%8u %s\n", count, step.c_str());
  if (seeds < 100) return 0;
  for (const char* step : kSteps) {
    if (seen[step] != 0) continue;
    std::printf("FAILED: no %s in %llu seeds\n", step, static_cast<unsigned long long>(seeds));
    return 1;
  }
  return 0;
}
