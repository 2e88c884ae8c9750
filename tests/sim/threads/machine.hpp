// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One run: memory, threads, trace and verdict. The instrumented code (instrumentation.cpp) finds the process' only
// machine. A run that breaks a rule ends the process with its report.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/threads/memory_model.hpp"
#include "tests/sim/threads/scheduler.hpp"

namespace dapple::sim {

// Shared with the process that starts the run.
struct Verdict {
  bool failed = false;
  char reason[512] = {};
  uint64_t trace = 0;  // a hash
  uint64_t steps = 0;
};

// The places of the program with an order that a mutation may weaken.
struct OrderedSite {
  uint64_t site;
  int order;
  uint64_t count;
};
struct Sites {
  static constexpr uint32_t kMax = 4096;
  uint32_t count = 0;
  OrderedSite all[kMax] = {};
  void note(uint64_t site, int order);
};

class Machine {
 public:
  struct Settings {
    uint64_t seed = 0;
    bool verbose = false;
    Verdict* verdict = nullptr;
    Sites* sites = nullptr;  // collects them
    // These operations are executed as if they were relaxed, or as `weaker`.
    std::vector<uint64_t> weakened = {};
    Order weaker = std::memory_order_relaxed;
    uint64_t base = 0;  // of the module, subtracted from sites
    uint64_t base_size = 0;
    uint64_t second_base = 0;  // of its copy
  };

  explicit Machine(const Settings& settings);

  // The one of this process; null outside of a run, and in threads that are not part of it.
  static Machine* current() { return current_ != nullptr && current_->scheduler.is_simulated() ? current_ : nullptr; }

  [[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // Ends the run well.
  [[noreturn]] void succeed();
  // A line of the trace.
  void note(const char* format, ...) __attribute__((format(printf, 2, 3)));
  // Mixes into the hash of the trace.
  void hash(uint64_t value) { trace_ = mixed(trace_ + value); }
  // A name for the traces.
  void name(const void* begin, size_t size, std::string text);
  void set_limit(uint64_t steps) { limit_ = steps; }

  // Before an operation: another thread may run. `place`: as for Scheduler.
  void point(uint64_t place = 0, uint64_t rarity = 1);
  // The same, before an access to memory.
  void point_before(Site site) { point(site_in_module(site), kRarity); }
  Order effective(Order order, Site site);
  uint64_t site_in_module(Site site) const;
  bool is_own_stack(const void* address);
  void trace_operation(const char* what, const void* object, Order order, uint64_t value, uint64_t behind, Site site);
  uint32_t self() const { return scheduler.self(); }
  uint32_t spawn(std::string name, uint32_t process, Scheduler::Body body);

  const Settings settings;
  Random random;  // the world's choices
  Scheduler scheduler;
  MemoryModel memory;

 private:
  static constexpr uint64_t kRarity = 64;

  static inline Machine* current_ = nullptr;

  std::string name_of(const void* address) const;
  void report();
  void stuck();

  uint64_t trace_ = 0;
  uint64_t limit_ = 5'000'000;
  struct Named {
    size_t size;
    std::string text;
  };
  std::map<uint64_t, Named> names_;
  std::vector<std::pair<std::string, uint64_t>> lines_;  // and their sites
};

}  // namespace dapple::sim
