// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// test-inject [--full] [--only CALL] [--scenario NAME] [--report]
//
// Plays each scenario once to learn from where our libraries call what, then again for each of these places, where the
// call fails. What the consumer sees must be what expectations.cpp says; the call that failed must succeed when it is
// made again, and the scenario go on to its end; and when the IA is closed nothing may be left. Where a connection is
// lost to a failure instead, the scenario is played once more without one.
//
//   --full      with every error that calls.def has for a call, instead of the first
//   --report    also says what was seen where all was well
#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/softroce/inject/inject.h"
#include "tests/softroce/inject/run.hpp"

namespace dapple::inject {
namespace {

constexpr int kTries = 3;  // for a place that a run did not come to: threads take turns as they like

// Paths that depend on timing, or calls that this system's compiler and devices never make.
constexpr const char* kRarelyReached[] = {"ibv_reg_mr", "ibv_reg_mr_iova", "rdma_notify", "realloc"};

struct Options {
  bool full = false;
  bool report = false;
  std::string only;
  std::string scenario;
};

int entries(const char* folder) {
  DIR* open_folder = opendir(folder);
  if (!open_folder) return -1;
  int count = 0;
  while (readdir(open_folder)) ++count;
  closedir(open_folder);
  return count;
}

// What there is of everything that could be left behind.
struct Inventory {
  int descriptors = entries("/proc/self/fd");
  int threads = entries("/proc/self/task");
  long counts[KINDS] = {};

  Inventory() {
    for (int kind = 0; kind < KINDS; ++kind) counts[kind] = inject_count(static_cast<inject_kind>(kind));
  }
  // What is here and was not there; empty when nothing.
  std::string beyond(const Inventory& before) const {
    std::string more;
    const auto add = [&](const char* name, long here, long there) {
      if (here != there) more += (more.empty() ? "" : ", ") + std::to_string(here - there) + " " + name;
    };
    add("descriptor", descriptors, before.descriptors);
    add("thread", threads, before.threads);
    for (int kind = 1; kind < KINDS; ++kind)
      add(inject_kind_name(static_cast<inject_kind>(kind)), counts[kind], before.counts[kind]);
    return more;
  }
};

void play(const Scenario& scenario, Run& run) {
  try {
    scenario.play(run);
  } catch (const Stopped&) {
    run.close_abruptly();
  }
}

class Campaign {
 public:
  explicit Campaign(Options options) : options_(std::move(options)) {}

  int run() {
    // What a process keeps once it has it: libraries, contexts, arenas.
    for (const Scenario* each = kScenarios; each->name; ++each) {
      inject_watch();
      Run warm;
      play(*each, warm);
      if (!warm.problem().empty()) return complain(*each, nullptr, 0, "without a failure: " + warm.problem());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    before_ = Inventory();
    for (const Scenario* each = kScenarios; each->name; ++each) {
      if (options_.scenario.empty() || options_.scenario == each->name) run_scenario(*each);
    }
    if (options_.only.empty() && options_.scenario.empty()) check_reached();
    std::printf("%d failures injected, %d places not reached again, %d problems\n", injected_, missed_, problems_);
    return problems_ == 0 ? 0 : 1;
  }

 private:
  void run_scenario(const Scenario& scenario) {
    const auto started = std::chrono::steady_clock::now();
    const int before = injected_;
    inject_watch();
    play_clean(scenario);
    std::vector<inject_place> places;
    for (size_t i = 0; i < inject_places(); ++i) places.push_back(inject_place_at(i));
    for (const inject_place& place : places) {
      if (!options_.only.empty() && options_.only != inject_name(place.call)) continue;
      // The same path through our libraries in another scenario is the same place.
      if (!seen_.insert({place.call, place.path}).second) continue;
      for (const int* error = inject_errors(place.call); *error; ++error) {
        inject(scenario, place, *error);
        if (!options_.full) break;
      }
    }
    const auto took = std::chrono::steady_clock::now() - started;
    std::printf("%-14s %4d failures in %.1f s\n", scenario.name, injected_ - before,
                std::chrono::duration<double>(took).count());
    std::fflush(stdout);
  }

  void play_clean(const Scenario& scenario) {
    Run run;
    play(scenario, run);
    if (!run.problem().empty()) complain(scenario, nullptr, 0, "without a failure: " + run.problem());
  }

  void inject(const Scenario& scenario, const inject_place& place, int error) {
    for (int tried = 0; tried < kTries; ++tried) {
      inject_arm(place.call, place.path, error);
      Run run;
      play(scenario, run);
      const bool fired = inject_fired() != kNotFired;
      inject_off();
      if (!fired && run.problem().empty()) continue;
      ++injected_;
      reached_.insert(place.call);
      judge(scenario, place, error, run);
      check_nothing_left(scenario, place, error);
      if (run.stopped()) play_clean(scenario);
      return;
    }
    ++missed_;
    seen_.erase({place.call, place.path});  // perhaps in another scenario
  }

  void judge(const Scenario& scenario, const inject_place& place, int error, const Run& run) {
    const std::string where = run.where().empty() ? "a thread" : run.where();
    if (!run.problem().empty()) {
      complain(scenario, &place, error, "in " + where + ": " + run.outcome() + ", then " + run.problem());
      return;
    }
    const char* call = inject_name(place.call);
    if (!is_expected(call, error, where, run.outcome())) {
      complain(scenario, &place, error,
               "in " + where + ": " + run.outcome() + " instead of " + expected_outcomes(call, error, where));
    } else if (options_.report) {
      std::printf("  %s %s in %s: %s\n", call, strerrorname_np(error), where.c_str(), run.outcome().c_str());
    }
  }

  void check_nothing_left(const Scenario& scenario, const inject_place& place, int error) {
    std::string left = Inventory().beyond(before_);
    // The kernel lists a thread for a moment after it was joined.
    for (int tried = 0; tried < 50 && !left.empty(); ++tried) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      left = Inventory().beyond(before_);
    }
    if (left.empty()) return;
    complain(scenario, &place, error, "left behind: " + left);
    before_ = Inventory();  // said once
  }

  void check_reached() {
    const bool allocator = reached_.contains(CALL_malloc);
    for (int call = 0; call < CALLS; ++call) {
      const char* name = inject_name(static_cast<inject_call>(call));
      if (!*inject_errors(static_cast<inject_call>(call)) || reached_.contains(static_cast<inject_call>(call)))
        continue;
      const bool rare = std::any_of(std::begin(kRarelyReached), std::end(kRarelyReached),
                                    [name](const char* other) { return std::strcmp(name, other) == 0; });
      // A sanitizer or valgrind takes the allocator and some system calls before we see them.
      if (rare || (!allocator && std::strncmp(name, "ibv_", 4) != 0 && std::strncmp(name, "rdma_", 5) != 0)) continue;
      std::printf("no scenario comes to %s\n", name);
      ++problems_;
    }
  }

  int complain(const Scenario& scenario, const inject_place* place, int error, const std::string& what) {
    ++problems_;
    std::printf("%s: ", scenario.name);
    if (place) std::printf("%s %s ", inject_name(place->call), strerrorname_np(error));
    std::printf("%s\n", what.c_str());
    for (int i = 0; place && i < kMaxFrames && place->frames[i].library; ++i)
      std::printf("    %s+0x%zx\n", place->frames[i].library, static_cast<size_t>(place->frames[i].offset));
    std::fflush(stdout);
    return 1;
  }

  const Options options_;
  Inventory before_;
  std::set<std::pair<inject_call, uint32_t>> seen_;
  std::set<inject_call> reached_;
  int injected_ = 0;
  int missed_ = 0;
  int problems_ = 0;
};

}  // namespace
}  // namespace dapple::inject

int main(int argc, char** argv) {
  dapple::inject::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--full") {
      options.full = true;
    } else if (word == "--report") {
      options.report = true;
    } else if (word == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (word == "--scenario" && i + 1 < argc) {
      options.scenario = argv[++i];
    } else {
      std::fprintf(stderr, "usage: test-inject [--full] [--only CALL] [--scenario NAME] [--report]\n");
      return 2;
    }
  }
  return dapple::inject::Campaign(options).run();
}
