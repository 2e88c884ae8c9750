// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/threads/mutations.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <new>

#include "tests/sim/threads/source_lines.hpp"

namespace dapple::sim {
namespace {

constexpr uint64_t kSeedsForSites = 200;

struct Line {
  std::vector<uint64_t> sites;
  std::vector<const Scenario*> scenarios;  // that execute it
  int order = 0;
  uint64_t count = 0;
};
using Lines = std::map<std::string, Line>;

const char* name_of(int order) {
  switch (static_cast<Order>(order)) {
    case std::memory_order_seq_cst:
      return "seq_cst";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_release:
      return "release";
    default:
      return "acquire";
  }
}

void add_lines(Lines& lines, const Modules& modules, const Scenario& scenario, const std::string& files,
               uint64_t first) {
  void* room = mmap(nullptr, sizeof(Sites), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* sites = new (room) Sites;
  for (uint64_t seed = first; seed < first + kSeedsForSites; seed++)
    run_seed(modules, scenario, seed, {.sites = sites});
  std::vector<uint64_t> places;
  for (uint32_t i = 0; i < sites->count; i++) places.push_back(sites->all[i].site);
  const std::vector<std::string> names = source_lines(places);
  for (uint32_t i = 0; i < sites->count; i++) {
    if (names[i].find(files) == std::string::npos) continue;
    Line& line = lines[names[i]];
    line.sites.push_back(places[i]);
    if (line.scenarios.empty() || line.scenarios.back() != &scenario) line.scenarios.push_back(&scenario);
    line.order = std::max(line.order, sites->all[i].order);
    line.count += sites->all[i].count;
  }
  munmap(room, sizeof(Sites));
}

}  // namespace

int weaken_orders(const Modules& modules, const std::vector<const Scenario*>& scenarios, const std::string& files,
                  uint64_t first, uint64_t last) {
  int survivors = 0;
  Lines lines;
  for (const Scenario* scenario : scenarios) add_lines(lines, modules, *scenario, files, first);
  if (lines.empty()) {
    std::fprintf(stderr, "sim-threads: no order of such files is executed\n");
    return 2;
  }
  for (auto& [name, line] : lines) {
    std::sort(line.sites.begin(), line.sites.end());
    const Scenario* broken = nullptr;
    uint64_t seed = first;
    Verdict verdict;
    for (; seed <= last && broken == nullptr; seed++) {
      for (const Scenario* scenario : line.scenarios) {
        verdict = run_seed(modules, *scenario, seed, {.weakened = line.sites});
        if (!verdict.failed) continue;
        broken = scenario;
        break;
      }
    }
    if (broken != nullptr) {
      std::printf("%s: %s is needed: %s, seed %" PRIu64 ": %s\n", name.c_str(), name_of(line.order), broken->name,
                  seed - 1, verdict.reason);
    } else {
      survivors++;
      std::printf("%s: %s SURVIVES as relaxed (%" PRIu64 " uses)\n", name.c_str(), name_of(line.order), line.count);
    }
    std::fflush(stdout);
  }
  return survivors == 0 ? 0 : 1;
}

}  // namespace dapple::sim
