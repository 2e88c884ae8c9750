// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// sim-threads: runs the threads of the product in a simulated machine, by their seeds. One seed of a scenario is one
// exact run.
#include <sys/personality.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/sim/threads/mutations.hpp"
#include "tests/sim/threads/run.hpp"

namespace {

using namespace dapple::sim;

constexpr char kUsage[] =
    "usage: sim-threads --list\n"
    "       sim-threads --model\n"
    "       sim-threads --scenario NAME --seed N\n"
    "       sim-threads [--scenario NAME] --seeds FIRST..LAST\n"
    "       sim-threads [--scenario NAME] --orders FILE --seeds FIRST..LAST\n"
    "\n"
    "  --model         tests the memory model itself\n"
    "  --scenario NAME all whose names begin like this; by default all\n"
    "  --seed N        one run, with its trace\n"
    "  --seeds A..B    all of these, until some have failed\n"
    "  --orders FILE   weakens the memory orders in files whose names contain this, one after the other, and reports\n"
    "                  those that no seed misses\n"
    "  --module FILE   instead of the file beside this program\n";

constexpr int kMaxFailures = 3;
constexpr uint64_t kModelSeeds = 3000;

struct Seeds {
  uint64_t first = 0, last = 0;
};

int test_model(const Modules& modules) {
  int failures = 0;
  for (size_t i = 0; i < modules.module().scenario_count; i++) {
    const Scenario& test = modules.module().scenarios[i];
    if (test.kind == Scenario::Kind::kRules) continue;
    uint64_t seed = 0;
    Verdict verdict;
    while (seed < kModelSeeds && !(verdict = run_seed(modules, test, seed)).failed) seed++;
    const bool found = seed < kModelSeeds;
    const bool good = found == (test.kind == Scenario::Kind::kPossible);
    std::printf("%s %s: %s\n", good ? "ok" : "FAILED", test.name, found ? verdict.reason : "never");
    if (!good) failures++;
  }
  return failures == 0 ? 0 : 1;
}

int run_one(const Modules& modules, const Scenario& scenario, uint64_t seed) {
  const Verdict verdict = run_seed(modules, scenario, seed, {.verbose = true});
  std::printf("%s, seed %" PRIu64 ": trace %016" PRIx64 ", %" PRIu64 " steps, %s\n", scenario.name, seed, verdict.trace,
              verdict.steps, verdict.failed ? verdict.reason : "all rules kept");
  return verdict.failed ? 1 : 0;
}

int run_many(const Modules& modules, const Scenario& scenario, Seeds seeds) {
  int failures = 0;
  uint64_t all = 0, steps = 0;
  for (uint64_t seed = seeds.first; seed <= seeds.last && failures < kMaxFailures; seed++) {
    Verdict verdict = run_seed(modules, scenario, seed);
    // Some seeds run twice: the same seed must give the same run.
    if (!verdict.failed && seed % 64 == 0 && run_seed(modules, scenario, seed).trace != verdict.trace) {
      verdict.failed = true;
      std::strcpy(verdict.reason, "the second run differs from the first");
    }
    all = mixed(all + verdict.trace);
    steps += verdict.steps;
    if (!verdict.failed) continue;
    failures++;
    std::printf("%s, seed %" PRIu64 " FAILED: %s\nreplay: scripts/sim --threads %s --seed %" PRIu64 "\n", scenario.name,
                seed, verdict.reason, scenario.name, seed);
    std::fflush(stdout);
  }
  if (failures == 0)
    std::printf("%s, seeds %" PRIu64 "..%" PRIu64 ": all rules kept, %" PRIu64 " steps, traces %016" PRIx64 "\n",
                scenario.name, seeds.first, seeds.last, steps, all);
  return failures == 0 ? 0 : 1;
}

bool begins(const char* name, const char* with) {
  return with == nullptr || std::string_view(name).starts_with(with);
}

// The same addresses in each run, so that a seed gives the same run.
void fix_addresses(char** argv) {
  const int now = personality(0xFFFFFFFF);
  if ((now & ADDR_NO_RANDOMIZE) != 0 || personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  execv("/proc/self/exe", argv);
}

std::string module_file() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  return std::string(path, size > 0 ? static_cast<size_t>(size) : 0) + ".so";
}

int run(int argc, char** argv) {
  const char *scenario = nullptr, *seed = nullptr, *seeds = nullptr, *orders = nullptr, *module = nullptr;
  bool list = false, model = false;
  for (int i = 1; i < argc; i++) {
    const std::string_view option = argv[i];
    list |= option == "--list";
    model |= option == "--model";
    const char** value = option == "--scenario" ? &scenario
                         : option == "--seed"   ? &seed
                         : option == "--seeds"  ? &seeds
                         : option == "--orders" ? &orders
                         : option == "--module" ? &module
                                                : nullptr;
    if (value != nullptr && i + 1 < argc) *value = argv[++i];
  }
  const char* dots = seeds == nullptr ? nullptr : std::strstr(seeds, "..");
  if (!list && !model && (seed == nullptr) == (dots == nullptr)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const Modules modules(module == nullptr ? module_file() : module);
  if (model) return test_model(modules);
  const Seeds range =
      dots == nullptr ? Seeds{} : Seeds{std::strtoull(seeds, nullptr, 10), std::strtoull(dots + 2, nullptr, 10)};
  int result = 0, count = 0;
  std::vector<const Scenario*> chosen;
  for (size_t i = 0; i < modules.module().scenario_count; i++) {
    const Scenario& each = modules.module().scenarios[i];
    if (each.kind != Scenario::Kind::kRules && scenario == nullptr) continue;
    if (!begins(each.name, scenario)) continue;
    chosen.push_back(&each);
  }
  if (orders != nullptr) return weaken_orders(modules, chosen, orders, range.first, range.last);
  for (const Scenario* each : chosen) {
    count++;
    if (list) {
      std::printf("%s\n", each->name);
    } else if (seed != nullptr) {
      result |= run_one(modules, *each, std::strtoull(seed, nullptr, 10));
    } else {
      result |= run_many(modules, *each, range);
    }
  }
  if (count == 0) std::fputs("sim-threads: no such scenario\n", stderr);
  return count == 0 ? 2 : result;
}

}  // namespace

int main(int argc, char** argv) {
  fix_addresses(argv);
  const int result = run(argc, argv);
  std::fflush(nullptr);
  // The destructors of the modules would call a machine that is gone.
  _exit(result);
}
