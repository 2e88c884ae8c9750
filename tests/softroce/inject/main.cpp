// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// test-inject [--full] [--only CALL] [--scenario NAME] [--report]
//
// Runs each scenario once to learn the places from which our libraries call functions, then again for each of these
// places, where the call fails. The consumer must see a result in expectations.cpp. The failed call must succeed when
// it is repeated, and the scenario must reach its end. When the IA is closed nothing may be left. If a failure instead
// loses a connection, the scenario runs once more without one.
//
//   --full      with every error that calls.def has for a call, instead of the first
//   --report    also prints the correct results
#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/softroce/descriptors.h"
#include "tests/softroce/inject/inject.h"
#include "tests/softroce/inject/run.hpp"

namespace dapple::inject {
namespace {

constexpr int kTries = 3;  // tries for a place that a run did not reach: the order of threads varies

// Paths that depend on timing, or calls that this system's compiler and devices never make.
constexpr const char* kRarelyReached[] = {"ibv_reg_mr",    "ibv_reg_mr_iova", "ibv_query_gid",
                                          "ibv_fork_init", "rdma_notify",     "realloc"};

struct Options {
  bool full = false;
  bool report = false;
  std::string only;
  std::string scenario;
};

bool software_device() {
  const char* device = std::getenv("SOFTROCE_DEVICE");
  return device && std::strncmp(device, "dapple", 6) == 0;
}

int entries(const char* folder) {
  DIR* open_folder = opendir(folder);
  if (!open_folder) return -1;
  int count = 0;
  while (readdir(open_folder)) ++count;
  closedir(open_folder);
  return count;
}

// The resources that could be left behind.
struct Inventory {
  int descriptors = count_descriptors().others;
  int threads = entries("/proc/self/task");
  long counts[KINDS] = {};

  Inventory() {
    for (int kind = 0; kind < KINDS; ++kind) counts[kind] = inject_count(static_cast<inject_kind>(kind));
  }
  // The new resources; empty if there are none.
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

// A name for a place that is the same in every process.
struct SharedPlace {
  inject_call call;
  uint32_t path;
  bool operator<(const SharedPlace& other) const { return std::pair(call, path) < std::pair(other.call, other.path); }
};

// The processes' shared state.
struct Shared {
  size_t learned;  // places that the first use of the library reaches
  SharedPlace places[2048];
  size_t seen;  // the places among them that have failed
  SharedPlace seen_places[4096];
  bool fired;
  char where[64];
  char outcome[256];
  char problem[512];
};

Shared& shared() {
  static Shared& area =
      *static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return area;
}

// Runs the function in a process of its own. Returns its exit code, or 128 plus the signal that ended it.
template <class Function>
int in_child(Function function) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) std::exit(function());  // lets a leak checker run
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

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
    // Resources that a process keeps after their first use: libraries, contexts, arenas.
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
    for (const auto& [call, path] : seen_) shared().seen_places[shared().seen++] = {call, path};
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
    for (int tried = 0; tried < 1000 && !left.empty(); ++tried) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      left = Inventory().beyond(before_);
    }
    if (left.empty()) return;
    complain(scenario, &place, error, "left behind: " + left);
    before_ = Inventory();  // printed once
  }

  void check_reached() {
    const bool allocator = reached_.contains(CALL_malloc);
    for (int call = 0; call < CALLS; ++call) {
      const char* name = inject_name(static_cast<inject_call>(call));
      if (!*inject_errors(static_cast<inject_call>(call)) || reached_.contains(static_cast<inject_call>(call)))
        continue;
      const bool rare = std::any_of(std::begin(kRarelyReached), std::end(kRarelyReached),
                                    [name](const char* other) { return std::strcmp(name, other) == 0; });
      // Our libraries open only files of the kernel's devices.
      if (software_device() && (std::strcmp(name, "open") == 0 || std::strcmp(name, "fcntl") == 0)) continue;
      // A sanitizer or valgrind handles the allocator and some system calls before we see them.
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

// The first use of the library: reading dat.conf, making tables. Each failure needs a new process.
class FirstUse {
 public:
  static int learn() {
    inject_watch();
    Run run;
    play(kScenarios[0], run);
    for (size_t i = 0; i < inject_places(); ++i) {
      const inject_place place = inject_place_at(i);
      shared().places[shared().learned++] = {place.call, place.path};
    }
    return run.problem().empty() ? 0 : 1;
  }

  static int fail(const SharedPlace& place, int error) {
    inject_arm(place.call, place.path, error);
    Run run;
    play(kScenarios[0], run);
    shared().fired = inject_fired() != kNotFired;
    std::snprintf(shared().where, sizeof shared().where, "%s", run.where().c_str());
    std::snprintf(shared().outcome, sizeof shared().outcome, "%s", run.outcome().c_str());
    std::snprintf(shared().problem, sizeof shared().problem, "%s", run.problem().c_str());
    return 0;
  }

  // Returns the number of problems.
  static int run(const Options& options) {
    const std::set<SharedPlace> seen(shared().seen_places, shared().seen_places + shared().seen);
    int injected = 0;
    int problems = 0;
    for (size_t i = 0; i < shared().learned; ++i) {
      const SharedPlace place = shared().places[i];
      const char* call = inject_name(place.call);
      const int error = inject_errors(place.call)[0];
      if (!error || seen.contains(place) || (!options.only.empty() && options.only != call)) continue;
      const int code = in_child([&] { return fail(place, error); });
      if (code == 0 && !shared().fired && !*shared().problem) continue;
      ++injected;
      const std::string where = *shared().where ? shared().where : "a thread";
      std::string wrong;
      if (code != 0) {
        wrong = "exit code " + std::to_string(code);
      } else if (*shared().problem) {
        wrong = std::string(shared().outcome) + ", then " + shared().problem;
      } else if (!is_expected(call, error, where + FIRST_USE, shared().outcome) &&
                 !is_expected(call, error, where, shared().outcome)) {
        wrong = std::string(shared().outcome) + " instead of " + expected_outcomes(call, error, where);
      } else if (options.report) {
        std::printf("  %s %s in %s: %s\n", call, strerrorname_np(error), where.c_str(), shared().outcome);
      }
      if (wrong.empty()) continue;
      std::printf("first use: %s %s in %s: %s\n", call, strerrorname_np(error), where.c_str(), wrong.c_str());
      ++problems;
    }
    std::printf("first use      %4d failures, %d problems\n", injected, problems);
    return problems;
  }
};

int run_all(const Options& options) {
  const bool first_use = options.scenario.empty() || options.scenario == "first use";
  shared().learned = 0;  // before there are children
  if (first_use && (in_child([] { return FirstUse::learn(); }) != 0 || shared().learned == 0)) {
    std::printf("first use: something is wrong without a failure\n");
    return 1;
  }
  const int code = in_child([&] { return Campaign(options).run(); });
  if (code > 1) std::printf("ended with %d\n", code);
  const int problems = first_use ? FirstUse::run(options) : 0;
  return code == 0 && problems == 0 ? 0 : 1;
}

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
  return dapple::inject::run_all(options);
}
